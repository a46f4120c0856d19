"""Words spelt so that no expression sees them: digits for letters, marks in and between words, backwards.

Single letters in disguise are undone before; here all letters are ASCII.
"""

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spelling:
    """One way to spell words oddly."""

    likely: str
    """RE2: where it does not occur the text is not spelt so."""
    read: Callable[[str], str]


_LEET = bytes.maketrans(b"01345678@$", b"oieasgtbas")
_LEET_WITH_L = bytes.maketrans(b"01345678@$", b"oleasgtbas")
_WORDS_TIED = re.compile(r"(?<![A-Za-z])[A-Za-z]++(?P<tie>[-_.+])(?:[A-Za-z]++(?P=tie)){2,}[A-Za-z]+")
_BLOCK_TAG = re.compile(r"</?(?:br|p|div|li|ul|ol|td|tr|h[1-6])\b[^<>]{0,200}>")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
_LINE_QUOTED = re.compile(r"\n[ \t]*(?:[>#|]|//)[>#|/ \t]*")
_WORD = re.compile(r"\S+")


def _read_leet(text: str) -> str:
    """A 1 is an i; two of them are more often an l twice."""
    return text.replace("11", "ll").encode().translate(_LEET).decode()


def _read_leet_with_l(text: str) -> str:
    return text.encode().translate(_LEET_WITH_L).decode()


def _untie(text: str) -> str:
    return _WORDS_TIED.sub(lambda words: words[0].replace(words["tie"], " "), text)


def _strip_tags(text: str) -> str:
    return _TAG.sub("", _BLOCK_TAG.sub("\n", _strip_comments(text)))


def _strip_comments(text: str) -> str:
    """By splitting: an expression would look for the end of a comment from each of its beginnings."""
    before, *comments = text.split("<!--")
    return before + "".join(comment.partition("-->")[2] if "-->" in comment else comment for comment in comments)


def _unquote_lines(text: str) -> str:
    return _LINE_QUOTED.sub("\n", text)


def _reverse(text: str) -> str:
    """The whole backwards, and each word by itself."""
    return f"{text[::-1]}\n{_WORD.sub(lambda word: word[0][::-1], text)}"


def _read_rot13(text: str) -> str:
    return codecs.encode(text, "rot13")


def _join_lines(text: str) -> str:
    return "".join(line.strip().removesuffix("-") for line in text.splitlines())


def strip_marks(squeezed: str) -> str:
    """Without emphasis, quotation marks and hyphens: `**ig-nore**`."""
    return squeezed.replace("- ", "").encode().translate(None, b'*`~"|-').decode()


_LEET_WORD = r"(?:[A-Za-z][013457@$]+[A-Za-z]|\b[013457@$]+[A-Za-z]{2})"
_TIED = "|".join(rf"[A-Za-z]{tie}[A-Za-z]+{tie}[A-Za-z]+{tie}[A-Za-z]" for tie in ("-", "_", r"\.", r"\+"))

# Undone at the place where they stand: what is not meant so is still readable afterwards.
SMOOTHINGS = (
    Spelling(r"</?[A-Za-z]|<!--", _strip_tags),
    Spelling(r"\n[ \t]*(?:[>#|]|//)", _unquote_lines),
    Spelling(_TIED, _untie),
)
# Words that a line break cuts in two; the only reading that needs the lines. One is short, or it is wrapped prose.
LINES = Spelling(r"(?:^|\n)[^\n]{0,15}[A-Za-z]\n[ \t]*[a-z]", _join_lines)
# Another reading of the whole text each.
READINGS = (
    Spelling(_LEET_WORD, _read_leet),
    Spelling(_LEET_WORD, _read_leet_with_l),
    # Among the most common words of English, backwards or in rot13.
    Spelling(r"(?i)\b(?:eht|uoy|ruoy|lla|siht|morf|erongi|ton\s+od)\b", _reverse),
    Spelling(r"(?i)\b(?:gur|naq|lbh|lbhe|nyy|guvf|sebz|abg|vtaber)\b", _read_rot13),
)
