"""Which items fit a query, and in which order.

An item passes when its similarity stands out from the background, or when it shares enough of the query's weight in
words. The threshold, not the ranking, loses the right lesson in a small scope, and the words win most of it back.
A word weighs by how rare it is in the scope and the background together: in a scope of one item every word is in all
of its items, and only the background can tell a rare word from a common one; in a large scope the scope decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, pstdev
from typing import Any, Generic, TypeVar

from libs.common.domain.calibration import SETTING_DEFAULT, Background, z_of_setting
from libs.common.domain.lexical import Frequencies, coverage

KeyT = TypeVar("KeyT")

LEXICAL_WEIGHT = 0.5
COVERAGE_DEFAULT = 0.2
"""The bar of the lexical arm at the default setting: a fifth of the query's weight."""
SPREAD_MIN = 1e-9


@dataclass(frozen=True, slots=True)
class Candidate(Generic[KeyT]):
    """An active item of the scope, and which of the query's terms it contains."""

    key: KeyT
    cosine: float
    terms: frozenset[str] = frozenset()
    terms_total: int = 0
    """How many distinct terms the item has in all."""


@dataclass(frozen=True, slots=True)
class Ranked(Generic[KeyT]):
    key: KeyT
    cosine: float
    z: float
    coverage: float
    rank: float


@dataclass(frozen=True, slots=True)
class Gate:
    """What passes: either bar is enough."""

    z_min: float
    coverage_min: float

    def passes(self, item: Ranked[Any]) -> bool:
        return item.z >= self.z_min or item.coverage >= self.coverage_min


def gate_of_setting(setting: float) -> Gate | None:
    """Both bars move with the setting; None lets everything through."""
    if setting <= 0:
        return None
    return Gate(z_of_setting(setting), COVERAGE_DEFAULT * setting / SETTING_DEFAULT)


def rank_items(
    candidates: Sequence[Candidate[KeyT]],
    terms: Sequence[str],
    frequencies: Frequencies,
    background: Background | None,
) -> list[Ranked[KeyT]]:
    """All candidates, best first: z(cosine) + 0.5 z(coverage for the length), each over the candidates.

    `frequencies` are those of the scope plus those of the background. Without a background there is no vector of the
    query (the embedder is down), and the words alone decide.
    """
    covered = [coverage(terms, item.terms, frequencies) for item in candidates]
    near = _standardise([item.cosine if background else 0.0 for item in candidates])
    shared = _standardise(_for_length(covered, [item.terms_total for item in candidates]))
    ranked = [
        Ranked(
            key=item.key,
            cosine=item.cosine,
            z=background.z(item.cosine) if background else 0.0,
            coverage=share,
            rank=closeness + LEXICAL_WEIGHT * words,
        )
        for item, share, closeness, words in zip(candidates, covered, near, shared, strict=True)
    ]
    return sorted(ranked, key=lambda item: -item.rank)


def recall_items(ranked: Sequence[Ranked[KeyT]], gate: Gate | None, limit: int) -> list[Ranked[KeyT]]:
    """The best items that pass, at most `limit`."""
    return [item for item in ranked if gate is None or gate.passes(item)][:limit]


def _for_length(covered: Sequence[float], lengths: Sequence[int]) -> list[float]:
    """A long item contains more words of any query; half of its length beyond the mean is held against it."""
    mean = fmean(lengths) if lengths else 0.0
    if mean == 0:
        return list(covered)
    return [share / sqrt(0.5 + 0.5 * length / mean) for share, length in zip(covered, lengths, strict=True)]


def _standardise(values: Sequence[float]) -> list[float]:
    if len(values) < 2 or (spread := pstdev(values)) < SPREAD_MIN:
        return [0.0] * len(values)
    mean = fmean(values)
    return [(value - mean) / spread for value in values]
