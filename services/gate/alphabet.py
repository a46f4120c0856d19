"""Texts and expressions with one byte for each character: Hyperscan is half as fast again over bytes as over UTF-8.

ASCII stays as it is; all other characters share 128 bytes. What matches in characters then matches in bytes, since
counts, classes and word boundaries see the same; look-alikes can only name too many expressions, never too few. The
traps: a range or a negated class that names a foreign letter means others than the bytes would, and only ASCII has
cases in bytes, so foreign letters are written in all of theirs.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache

# Unicode classes, single bytes, and code points beyond ASCII.
_WIDE_ESCAPE = re.compile(r"\\[pPC]|\\x\{|\\x[89a-fA-F]|\\[23][0-7]")
_CLASS_OR_LETTER = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|[^\x00-\x7f]", re.DOTALL)
_EXCLUDING = re.compile(r"\[\^.*[^\x00-\x7f]|[^\x00-\x7f]-[^\]]|[^\[]-[^\x00-\x7f]", re.DOTALL)
_FOREIGN = re.compile(r"[^\x00-\x7f]")
# Without regard to case a `k` means the first too, and an `s` the second, which no byte can say.
_CASES_OF_ASCII = re.compile("[\u212a\u017f]")
_CASED_CODES_END = 0x1F000
_HIGH_BIT = b"\0" + b"\x80" * 255


def write_text(text: bytes) -> bytes | None:
    """From UTF-8; None for what bytes cannot say."""
    if text.isascii():
        return text
    characters = text.decode()
    return None if _CASES_OF_ASCII.search(characters) else _squash(characters)


def write_expression(source: str) -> bytes | None:
    """None for what bytes cannot say."""
    if _WIDE_ESCAPE.search(source):
        return None
    if source.isascii():
        return source.encode()
    classes = [token[0] for token in _CLASS_OR_LETTER.finditer(source) if token[0].startswith("[")]
    if r"\Q" in source or any(map(_EXCLUDING.search, classes)):
        return None
    return _squash(_CLASS_OR_LETTER.sub(_write_cases, source))


def _write_cases(token: re.Match[str]) -> str:
    if token[0].startswith("["):
        return _FOREIGN.sub(lambda letter: _cases_of(letter[0]), token[0])
    return token[0] if token[0].isascii() else f"[{_cases_of(token[0])}]"


def _cases_of(letter: str) -> str:
    return _letters_by_fold().get(letter.casefold(), letter)


@cache
def _letters_by_fold() -> Mapping[str, str]:
    """All cases of a letter, by what they fold to; those that have but one are left out."""
    letters: defaultdict[str, str] = defaultdict(str)
    for letter in map(chr, range(_CASED_CODES_END)):
        letters[letter.casefold()] += letter
    return {fold: cases for fold, cases in letters.items() if len(cases) > 1}


def _squash(characters: str) -> bytes:
    """The low byte of each code point, with the high bit set unless it is ASCII."""
    wide = characters.encode("utf-32-le")
    low, middle, high = wide[::4], wide[1::4].translate(_HIGH_BIT), wide[2::4].translate(_HIGH_BIT)
    # As whole numbers, since bytes know no `or`.
    squashed = int.from_bytes(low) | int.from_bytes(middle) | int.from_bytes(high)
    return squashed.to_bytes(len(characters))
