"""What no honest text needs: characters that hide a message or turn it around. They refuse by themselves.

Emoji, flags, Arabic, Hebrew and Persian need some of these characters too, so each rule names what it lets pass.
`reveal` makes the hidden message readable, so that the patterns can say what it is.
"""

import re

# A cheap look that tells nearly every text from those that need one of the rules.
_SUSPECT = re.compile(r"[\u200b-\u200d\u202d\u202e\u2060-\u2064\ufeff\ufe01-\ufe0f\U000e0000-\U000e01ef]")

_TAG = re.compile(r"[\U000e0000-\U000e007f]")
# The flags of England, Scotland, Wales, Northern Ireland and of American and Canadian states; the text may be cut.
_TAG_FLAG = re.compile(
    "\U0001f3f4(?:\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074"
    "|\U000e0077\U000e006c\U000e0073|\U000e006e\U000e0069\U000e0072)"
    "|(?:\U000e0075\U000e0073|\U000e0063\U000e0061)[\U000e0061-\U000e007a]{2})\U000e007f"
    "|\U0001f3f4[\U000e0061-\U000e007a]{0,5}\\Z"
)
# One selector after an ideograph chooses a drawing of it; one \ufe0f or \ufe0e after anything, an emoji or a text form.
_SELECTOR = r"[\ufe01-\ufe0d\U000e0100-\U000e01ef]"
_STRAY_SELECTOR = re.compile(rf"(?<![\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]){_SELECTOR}")
_SELECTOR_RUN = re.compile(r"[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}")
_STRAY_SELECTORS_MIN = 2
_MIXED_RUN_MIN = 4
_BIDI_OVERRIDE = re.compile("[\u202d\u202e]")
# Bits spelt in characters of no width; an emoji or a Persian word has one of them between two letters.
_INVISIBLE_RUN = re.compile("[\u200b-\u200d\u2060-\u2064\ufeff]{8,}")

_TAGS_TO_ASCII = {0xE0000 + code: code for code in range(0x20, 0x7F)}


def find_structural(text: str) -> tuple[str, ...]:
    """Labels of the rules that refuse this text, in the order of the alphabet."""
    if text.isascii() or _SUSPECT.search(text) is None:
        return ()
    rules = {
        "structure.bidi-override": _BIDI_OVERRIDE.search(text) is not None,
        "structure.invisible-bits": _has_mixed_run(_INVISIBLE_RUN, text, 8),
        "structure.tag-characters": _TAG.search(_TAG_FLAG.sub("", text)) is not None,
        "structure.variation-selectors": _hides_bytes(text),
    }
    return tuple(label for label, refuses in rules.items() if refuses)


def _hides_bytes(text: str) -> bool:
    return len(_STRAY_SELECTOR.findall(text)) >= _STRAY_SELECTORS_MIN or _has_mixed_run(
        _SELECTOR_RUN, text, _MIXED_RUN_MIN
    )


def _has_mixed_run(run: re.Pattern[str], text: str, length_min: int) -> bool:
    """A message has different characters; the same one over and over is only sloppy."""
    return any(len(found) >= length_min and len(set(found)) > 1 for found in run.findall(text))


def reveal(text: str) -> str:
    """Tag characters as the ASCII they stand for, selectors as the bytes they carry."""
    if text.isascii() or _SUSPECT.search(text) is None:
        return text
    return _SELECTOR_RUN.sub(_read_selectors, text).translate(_TAGS_TO_ASCII)


def _read_selectors(run: re.Match[str]) -> str:
    return bytes(_selector_byte(ord(character)) for character in run[0]).decode("utf-8", "ignore")


def _selector_byte(code: int) -> int:
    return code - 0xFE00 if code < 0xE0100 else code - 0xE0100 + 16
