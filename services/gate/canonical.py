"""A text as a reader would see it.

Invisible characters, wide or foreign look-alike letters, accents and odd spacing hide words from an expression but
not from a model. Each function here undoes one of them; `views` says in which order.
"""

import re
import unicodedata
from typing import cast

import re2  # pyright: ignore[reportMissingTypeStubs]

# Look-alikes that NFKC leaves alone. Small on purpose: the usual suspects, not the Unicode table.
_FOREIGN = "АВЕЅІЈКМНОРСТУХаеѕіјорсухӏԁԛԝһκοαρνιτΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳεηυωχγктмүҽѵɑօսհոցզᏟᎠᎬᎪᏴᎻᎫᏦᏞᎷᏢᎡᏚᎢᏙᏔᏃ"
_LATIN = "ABESIJKMHOPCTYXaesijopcyxldqwhkoapvitABEZHIKMNOPTYXcjenuwxyktmyevaouhngqCDEABHJKLMPRSTVWZ"
_SIGNS = {"ℓ": "l", "‘": "'", "’": "'", "“": '"', "”": '"'}
# What NFKC writes out as whole words, in Arabic and Japanese, and a blank that is no white space to Python.
_BLANKS = dict.fromkeys(("\ufdfa", "\ufdfb", *map(chr, range(0x3300, 0x3358)), "\u2800"), " ")
_CONFUSABLES = dict(zip(_FOREIGN, _LATIN, strict=True)) | _SIGNS | _BLANKS
_CONFUSABLE = re.compile(f"[{''.join(_CONFUSABLES)}]")

# Format characters (zero-width, bidi, tags), variation selectors and letters that are drawn as nothing.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e01ef]+"
)
# NFKC sorts a run of marks in quadratic time; Unicode's stream-safe form (UAX 15) allows 30 of them.
_MARK_RUN = cast("re.Pattern[str]", re2.compile(r"(\p{M}{30})\p{M}+"))
# Marks of Latin, Greek and Cyrillic, and those for symbols; other scripts write vowels with theirs.
_MARKS = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"

_DRESSED_NAME = re.compile(
    r"LATIN (?P<case>SMALL|CAPITAL) LETTER (?:DOTLESS |SCRIPT |LONG |AFRICAN )?(?P<letter>[A-Z])(?: WITH .*)?"
    r"|LATIN LETTER SMALL CAPITAL (?P<small>[A-Z])"
    r"|(?:NEGATIVE (?:CIRCLED|SQUARED) LATIN CAPITAL|REGIONAL INDICATOR SYMBOL) LETTER (?P<capital>[A-Z])"
)
_LATIN_BLOCKS = (range(0xC0, 0x2B0), range(0x1D00, 0x1F00), range(0x2C60, 0x2C80), range(0xA720, 0xA800))
_LETTER_BLOCKS = (*_LATIN_BLOCKS, range(0x1F150, 0x1F200))


def drop_lone_surrogates(text: str) -> str:
    """Every view can be encoded as UTF-8; lone surrogates cannot."""
    return text if text.isascii() else text.encode("utf-8", "ignore").decode("utf-8")


def canonicalise(text: str) -> str:
    return squeeze(fold(text))


def squeeze(text: str) -> str:
    return " ".join(text.split())


def fold(text: str) -> str:
    """Nothing invisible, no compatibility forms, the usual look-alikes as Latin letters; line breaks stay."""
    if text.isascii():
        return text
    bounded = _MARK_RUN.sub(r"\1", _INVISIBLE.sub("", drop_lone_surrogates(text)))
    # Look-alikes both before and after: two of them would grow in NFKC, and some only come out of it.
    return _replace_confusables(unicodedata.normalize("NFKC", _replace_confusables(bounded)))


def _replace_confusables(text: str) -> str:
    return _CONFUSABLE.sub(lambda letter: _CONFUSABLES[letter[0]], text)


def strip_accents(text: str) -> str:
    """Bare letters: no marks, strokes, small capitals or letters in boxes. Foreign words lose accents they need."""
    if text.isascii():
        return text
    return _DRESSED.sub(lambda dressed: _BARE_LETTERS.get(dressed[0], ""), unicodedata.normalize("NFD", text))


def _build_bare_letters() -> dict[str, str]:
    """From the names of the letters: `LATIN SMALL LETTER O WITH STROKE` is an o."""
    named = ((code, unicodedata.name(chr(code), "")) for block in _LETTER_BLOCKS for code in block)
    return {chr(code): _bare_letter(match) for code, name in named if (match := _DRESSED_NAME.fullmatch(name))}


def _bare_letter(match: re.Match[str]) -> str:
    if match["letter"]:
        return match["letter"] if match["case"] == "CAPITAL" else match["letter"].lower()
    return match["capital"] or match["small"].lower()


_BARE_LETTERS = _build_bare_letters()
# Letters in boxes as one range: single characters beyond the basic plane make Python's engine slow.
_DRESSED = re.compile(
    f"[{_MARKS}\U0001f150-\U0001f1ff{''.join(letter for letter in _BARE_LETTERS if letter < chr(0x10000))}]"
)
