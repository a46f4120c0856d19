"""The readings of a text that are scanned: as written, as a reader sees it, and as it decodes.

What is hidden is made plain at the place where it stands, so a sentence that is encoded in parts becomes whole again
and one view undoes several disguises. The number of views is fixed and none is much longer than the text: a hostile
text costs little more than another.
"""

from collections.abc import Iterator

from services.gate.canonical import drop_lone_surrogates, fold, squeeze, strip_accents
from services.gate.decoding import CODES
from services.gate.engine import build_engine
from services.gate.patterns import Pattern
from services.gate.spelling import LINES, READINGS, SMOOTHINGS, strip_marks
from services.gate.structure import reveal

DECODINGS_MAX = 2
"""A text may be encoded twice."""

_DISGUISES = (*CODES, *SMOOTHINGS, LINES, *READINGS)
# One pass tells which of the disguises deserve a closer look; in most texts few do.
_ENGINE = build_engine([Pattern(f"likely.{number}", form.likely) for number, form in enumerate(_DISGUISES)])


def build_views(text: str) -> tuple[str, ...]:
    """The text as written, then its distinct readings, as seen first. Every view can be encoded as UTF-8."""
    # The engines disagree on whether a vertical tab is white space.
    written = drop_lone_surrogates(text).replace("\v", "\n")
    folded = fold(written)
    revealed = reveal(written)
    source = folded if revealed is written else fold(revealed)
    return (written, *dict.fromkeys((squeeze(folded), *_decoded_views(source))))


def _decoded_views(source: str) -> Iterator[str]:
    """At most eight, those that undo most first."""
    likely = _find_likely(source)
    letters = source
    for _ in range(DECODINGS_MAX):
        decoded = _decode(letters, likely)
        if decoded == letters:
            break
        yield squeeze(decoded)
        letters, likely = decoded, _find_likely(decoded)
    yield from _respelt_views(letters, likely)


def _respelt_views(letters: str, likely: frozenset[str]) -> Iterator[str]:
    bare = strip_accents(letters)
    likely = likely if bare == letters else _find_likely(bare)
    smooth = _smooth(bare, likely)
    yield strip_marks(squeeze(smooth))
    if LINES.likely in likely:
        yield LINES.read(smooth)
    yield from (reading.read(squeeze(bare)) for reading in READINGS if reading.likely in likely)


def _decode(text: str, likely: frozenset[str]) -> str:
    """Every code undone once, and what came out as a reader sees it."""
    decoded = text
    for code in CODES:
        if code.likely in likely:
            decoded = code.decode(decoded)
    return text if decoded == text else fold(drop_lone_surrogates(decoded))


def _smooth(text: str, likely: frozenset[str]) -> str:
    for smoothing in SMOOTHINGS:
        if smoothing.likely in likely:
            text = smoothing.read(text)
    return text


def _find_likely(text: str) -> frozenset[str]:
    """What `likely` says of each disguise; all of them when the engine could not tell."""
    found = _ENGINE.find_candidates(text.encode())
    numbers = range(len(_DISGUISES)) if found is None else found
    return frozenset(_DISGUISES[number].likely for number in numbers)
