"""Do patterns find more than the texts they were written for?

A hand-written pattern cannot be trained again without a source, so what it found elsewhere stands in for that: a
pattern that finds attacks of two sources speaks of an idea, one that finds attacks of a single source may be a
quotation.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cli.evaluations.corpus import GROUPS, Group
from cli.evaluations.judging import Judged
from cli.evaluations.shares import Share, share_of


@dataclass(frozen=True, slots=True)
class Generality:
    """Of the attacks of one group: those found by a pattern that also finds an attack of another source, and those
    that nothing refuses but a watching pattern marks, so that they wait for an administrator in low tiers."""

    group: Group
    across: Share
    held: Share

    def as_json(self) -> dict[str, object]:
        return {"across_sources": self.across.as_json(), "held": self.held.as_json()}


def measure_generality(judged: Iterable[Judged]) -> list[Generality]:
    attacks = [one for one in judged if one.row.is_attack]
    general = _find_general(attacks)
    lots = [(group, [one for one in attacks if group.has(one.row)]) for group in GROUPS]
    return [
        Generality(
            group,
            across=share_of(not general.isdisjoint(one.matched) for one in lot),
            held=share_of(one.is_held for one in lot),
        )
        for group, lot in lots
        if lot
    ]


def _find_general(attacks: Sequence[Judged]) -> frozenset[str]:
    """Labels that found attacks of two sources at least."""
    sources: dict[str, set[str]] = defaultdict(set)
    for one in attacks:
        for label in one.matched:
            sources[label].add(one.row.source)
    return frozenset(label for label, found in sources.items() if len(found) > 1)
