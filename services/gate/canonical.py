"""A text as the scanner reads it: as written, and as a reader would see it.

Invisible characters, wide or foreign look-alike letters and odd spacing hide words from an expression but not
from a model. The canonical view undoes them; the text as written is scanned too, since some patterns look at lines.
"""

import re
import unicodedata
from typing import Any, cast

import re2  # pyright: ignore[reportMissingTypeStubs]

_re2 = cast(Any, re2)  # google-re2 ships no types

# Look-alikes that NFKC leaves alone. Small on purpose: the usual suspects, not the Unicode table.
_CONFUSABLES = str.maketrans(
    dict(
        zip(
            "АВЕЅІЈКМНОРСТУХаеѕіјорсухӏԁԛԝһκοαρνιτΑΒΕΖΗΙΚΜΝΟΡΤΥΧɡıℓ’‘“”",
            "ABESIJKMHOPCTYXaesijopcyxldqwhkoapvitABEZHIKMNOPTYXgil''\"\"",
            strict=True,
        )
    )
)
# Format characters (zero-width, bidi, tags), variation selectors and letters that are drawn as nothing.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e01ef]+"
)
# NFKC sorts a run of marks in quadratic time; Unicode's stream-safe form (UAX 15) allows 30 of them.
_MARK_RUN = cast("re.Pattern[str]", _re2.compile(r"(\p{M}{30})\p{M}+"))


def build_views(text: str) -> tuple[str, ...]:
    """The distinct views to scan, the text as written first. Every view can be encoded as UTF-8."""
    written = text if text.isascii() else _drop_lone_surrogates(text)
    canonical = canonicalise(written)
    return (written,) if canonical == written else (written, canonical)


def canonicalise(text: str) -> str:
    return _squeeze(text if text.isascii() else _fold(text))


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _fold(text: str) -> str:
    visible = _INVISIBLE.sub("", _drop_lone_surrogates(text))
    bounded = _MARK_RUN.sub(r"\1", visible)
    return unicodedata.normalize("NFKC", bounded).translate(_CONFUSABLES)


def _drop_lone_surrogates(text: str) -> str:
    return text.encode("utf-8", "ignore").decode("utf-8")
