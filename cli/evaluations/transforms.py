"""A text in disguise: what a model still reads and a pattern may not. And the same text in other forms."""

import base64
import unicodedata
from collections.abc import Callable, Mapping

Transform = Callable[[str], str]

CARRIER = "The retry passed after the cache was cleared. "
"""Harmless words before a payload that nobody sees."""

_LOOK_ALIKES = str.maketrans("aceijopsxyABCEHKMOPTXY", "асеіјорѕхуАВСЕНКМОРТХУ")
_DIGITS = str.maketrans("aeiostAEIOST", "431057431057")
_TAG_BASE = 0xE0000
_FULL_WIDTH = str.maketrans({code: code + 0xFEE0 for code in range(0x21, 0x7F)} | {0x20: 0x3000})


def _encode_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _encode_percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def _encode_entities(text: str) -> str:
    return "".join(f"&#{ord(char)};" for char in text)


def _hide_in_tags(text: str) -> str:
    return CARRIER + "".join(chr(_TAG_BASE + ord(char)) for char in text if " " <= char <= "~")


DISGUISES: Mapping[str, Transform] = {
    "case": str.swapcase,
    "spacing": lambda text: text.replace(" ", " \t  "),
    "newlines": lambda text: text.replace(" ", "\n"),
    "zero-width": "\u200b".join,
    "look-alikes": lambda text: text.translate(_LOOK_ALIKES),
    "digits for letters": lambda text: text.translate(_DIGITS),
    "base64": _encode_base64,
    "hex": lambda text: text.encode().hex(),
    "percent": _encode_percent,
    "entities": _encode_entities,
    "tag characters": _hide_in_tags,
    "letter-spacing": " ".join,
    "full-width": lambda text: text.translate(_FULL_WIDTH),
}
"""By name: an attack that was caught must be caught like this too."""

FORMS: Mapping[str, Transform] = {
    "NFC": lambda text: unicodedata.normalize("NFC", text),
    "NFD": lambda text: unicodedata.normalize("NFD", text),
    "CRLF": lambda text: text.replace("\r\n", "\n").replace("\n", "\r\n"),
    "emoji": lambda text: f"✅ {text} 🎉 👩‍💻 ❤️",
    "code fence": lambda text: f"```\n{text}\n```",
}
"""By name: a benign text must keep its verdict like this."""
