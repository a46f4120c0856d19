"""Which items fit a query, and in which order.

An item passes when its similarity stands out from the background, when it shares enough of the query's weight in
words, or when it tells of the very failure that is asked about (`fingerprint`). The threshold, not the ranking, loses
the right lesson in a small scope, and the words win most of it back.
A word weighs by how rare it is in the scope and the background together: in a scope of one item every word is in all
of its items, and only the background can tell a rare word from a common one; in a large scope the scope decides.

Among many items some are near a question by chance alone, so both bars rise with the size of the scope.

The rank of an item does not depend on which other items were found. `recall`'s statement computes it in SQL; a test
holds both to the same answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Any, Generic, TypeVar

from libs.common.domain.calibration import SETTING_DEFAULT, Background, z_of_setting
from libs.common.domain.lexical import coverage

KeyT = TypeVar("KeyT")

WORDS_WEIGHT = 12.0
"""What full coverage adds to the rank, in standard deviations of the background. 9 to 16 rank alike."""
TERMS_TYPICAL = 50
"""An item of so many distinct terms is neither long nor short."""
SAME_FAILURE_LIFT = 12.0
"""What an equal fingerprint adds to the rank: as much as full coverage. 2 to 16 rank alike."""
COVERAGE_DEFAULT = 0.2
"""The bar of the lexical arm at the default setting: a fifth of the query's weight."""
STRICT_FROM_SIZE = 25
STRICTNESS_GROWTH = 0.25
STRICTNESS_MAX = 1.5
"""Reached at 185 items. Beyond it more would be lost than is silenced."""


@dataclass(frozen=True, slots=True)
class Candidate(Generic[KeyT]):
    """An active item of the scope, and which of the query's terms it contains."""

    key: KeyT
    cosine: float
    terms: frozenset[str] = frozenset()
    terms_total: int = TERMS_TYPICAL
    """How many distinct terms the item has in all."""
    same_failure: bool = False
    """One of its fingerprints is among the query's."""


@dataclass(frozen=True, slots=True)
class Ranked(Generic[KeyT]):
    key: KeyT
    cosine: float
    z: float
    coverage: float
    rank: float
    same_failure: bool = False


@dataclass(frozen=True, slots=True)
class Gate:
    """What passes: either bar is enough, and so is the same failure."""

    z_min: float
    coverage_min: float

    def passes(self, item: Ranked[Any]) -> bool:
        return item.z >= self.z_min or item.coverage >= self.coverage_min or item.same_failure


def gate_of_setting(setting: float, size: int = 0) -> Gate | None:
    """Both bars move with the setting and with the size of the scope; None lets everything through."""
    if setting <= 0:
        return None
    strictness = strictness_of(size)
    return Gate(z_of_setting(setting) * strictness, COVERAGE_DEFAULT * setting / SETTING_DEFAULT * strictness)


def strictness_of(size: int) -> float:
    """By how much the bars of a scope of so many items are higher than those of a small one."""
    if size <= STRICT_FROM_SIZE:
        return 1.0
    return min(STRICTNESS_MAX, 1 + STRICTNESS_GROWTH * log(size / STRICT_FROM_SIZE))


def rank_items(
    candidates: Sequence[Candidate[KeyT]], weights: Mapping[str, float], background: Background | None
) -> list[Ranked[KeyT]]:
    """All candidates, best first; `weights` are those of the query's terms in this scope.

    Without a background there is no vector of the query (the embedder is down), and the words alone decide.
    """
    ranked = [_rank(item, weights, background) for item in candidates]
    return sorted(ranked, key=lambda item: (-item.rank, -item.cosine))


def _rank(item: Candidate[KeyT], weights: Mapping[str, float], background: Background | None) -> Ranked[KeyT]:
    z = background.z(item.cosine) if background else 0.0
    share = coverage(weights, item.terms)
    # A long item contains more words of any query; half of its length beyond the typical is held against it.
    words = share / sqrt(0.5 + 0.5 * item.terms_total / TERMS_TYPICAL)
    rank = z + WORDS_WEIGHT * words + SAME_FAILURE_LIFT * item.same_failure
    return Ranked(item.key, item.cosine, z, share, rank, item.same_failure)


def recall_items(ranked: Sequence[Ranked[KeyT]], gate: Gate | None, limit: int) -> list[Ranked[KeyT]]:
    """The best items that pass, at most `limit`."""
    return [item for item in ranked if gate is None or gate.passes(item)][:limit]
