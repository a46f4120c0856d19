"""What was written in code, in plain words, at the place where it stands.

What does not decode to mostly printable text stays as it is: a commit hash is hexadecimal too. Every step costs time
in proportion to the text, whatever the text is.
"""

import base64
import binascii
import html
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass

PRINTABLE_SHARE_MIN = 0.9


@dataclass(frozen=True, slots=True)
class Code:
    """One way to write a text in code."""

    likely: str
    """RE2: where it does not occur there is no need to look closely. Seven bits and no control characters."""
    runs: re.Pattern[str]
    read: Callable[[re.Match[str]], str]

    def decode(self, text: str) -> str:
        return self.runs.sub(self.read, text)


def _read_entity(entity: re.Match[str]) -> str:
    return html.unescape(entity[0])


def _read_percent(run: re.Match[str]) -> str:
    return _readable(bytes.fromhex(run[0].replace("%", "")), run[0])


def _read_escape(escape: re.Match[str]) -> str:
    if escape["blank"]:
        return "\n"
    octal = escape["octal"]
    code = int(octal, 8) if octal else int(escape["braced"] or escape["short"] or escape["long"] or escape["byte"], 16)
    is_character = code <= sys.maxunicode and not 0xD800 <= code <= 0xDFFF
    return chr(code) if is_character else escape[0]


def _read_hex(run: re.Match[str]) -> str:
    return _readable(bytes.fromhex("".join(_HEX_PAIR.findall(run[0].replace("0x", "")))), run[0])


def _read_base64(run: re.Match[str]) -> str:
    written = run[0].rstrip("=").translate(_FROM_URL_LETTERS)
    # One letter behind the last whole group of four encodes nothing.
    whole = written[:-1] if len(written) % 4 == 1 else written
    return _readable(base64.b64decode(whole + "=" * (-len(whole) % 4)), run[0])


def _read_base32(run: re.Match[str]) -> str:
    written = run[0].rstrip("=")
    try:
        return _readable(base64.b32decode(written + "=" * (-len(written) % 8)), run[0])
    except binascii.Error:
        return run[0]


def _join_spaced(run: re.Match[str]) -> str:
    """One blank stands between letters, more of them between words."""
    return _GAP.sub(lambda gap: "" if len(gap[0]) == 1 else " ", run[0])


def _join_marked(run: re.Match[str]) -> str:
    return run[0][::2]


def _readable(data: bytes, otherwise: str) -> str:
    """The text that these bytes are, in UTF-8 or the UTF-16 of PowerShell, or else what was written."""
    is_wide = len(data) > 1 and not data[1::2].strip(b"\0")
    text = data.decode("utf-16-le" if is_wide else "utf-8", "ignore")
    seen = "".join(filter(str.isprintable, text.replace("\n", " ")))
    is_readable = len(seen.encode()) >= PRINTABLE_SHARE_MIN * len(data) / (2 if is_wide else 1)
    return text if is_readable else otherwise


_FROM_URL_LETTERS = str.maketrans("-_", "+/")
_HEX_PAIR = re.compile(r"[0-9a-fA-F]{2}")
_GAP = re.compile(r"\s+")

CODES = (
    Code(r"&#?\w{2}", re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,30});?"), _read_entity),
    Code(r"%[2-7][0-9a-fA-F]", re.compile(r"(?:%[0-9a-fA-F]{2})+"), _read_percent),
    Code(
        r"\\[uUx0-3nrt]",
        re.compile(
            r"\\(?:u\{(?P<braced>[0-9a-fA-F]{1,6})\}|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})"
            r"|x(?P<byte>[0-9a-fA-F]{2})|(?P<octal>[0-3][0-7]{2})|(?P<blank>[nrt]))"
        ),
        _read_escape,
    ),
    Code(
        r"(?:[2-7][0-9a-fA-F][\s:,;]{0,2}){8}|(?:0x[2-7][0-9a-fA-F][\s:,;]{0,2}){8}",
        re.compile(r"(?<![0-9a-zA-Z])(?:(?:0x)?[0-9a-fA-F]{2}[\s:,;]{0,2}){8,}(?![0-9a-zA-Z])"),
        _read_hex,
    ),
    # Three bytes of plain text, or of text in UTF-16, make a group of four that begins with one of few letters.
    Code(
        r"(?:[AI-Za-f][A-Za-z0-9+/_-]{3}){4}",
        re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}"),
        _read_base64,
    ),
    Code(r"[A-Z2-7]{24}", re.compile(r"(?<![A-Za-z0-9=])[A-Z2-7]{24,}={0,6}(?![A-Za-z0-9])"), _read_base32),
    Code(r"\S\s{1,4}\S\s{1,4}\S\s{1,4}\S(?:\s|$)", re.compile(r"(?<!\S)\S(?:\s{1,4}\S(?!\S)){4,}"), _join_spaced),
    Code(
        r"\b[A-Za-z][-._*~|+].[-._*~|+].[-._*~|+].",
        re.compile(r"(?<![A-Za-z0-9])[A-Za-z](?P<mark>[-._*~|+])(?:.(?P=mark))+[A-Za-z](?![A-Za-z0-9])"),
        _join_marked,
    ),
)
"""In the order in which they are undone: what is hexadecimal is made of letters of base64 too."""
