"""What an evaluation of the gate found, and the bars it is held to."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby

from cli.evaluations.bars import Bar
from cli.evaluations.corpus import GROUPS, Group, Row
from cli.evaluations.costs import Costs
from cli.evaluations.generality import Generality, measure_generality
from cli.evaluations.judging import Judged
from cli.evaluations.robustness import Robustness
from cli.evaluations.shares import Share, share_of

CHANGED_PERCENT_MAX = 0.2
US_PER_KB_MAX = 250
LARGE_P99_MS_MAX = 3
HOSTILE_MS_MAX = 50
LAG_MS_MAX = 10
CAUGHT_PERCENT_MIN = 95
KEPT_PERCENT_MIN = 100


@dataclass(frozen=True, slots=True)
class SourceKind:
    """The rows of one label, from one source, of one kind."""

    source: str
    kind: str
    label: int
    refused: Share

    def as_json(self) -> dict[str, object]:
        return {"source": self.source, "kind": self.kind, "label": self.label, **self.refused.as_json()}


@dataclass(frozen=True, slots=True)
class Report:
    pattern_set: str
    patterns: int
    judged: tuple[Judged, ...]
    costs: Costs
    robustness: Robustness | None = None

    @property
    def groups(self) -> list[tuple[Group, Share]]:
        """Those that the corpus has rows of, with the share refused."""
        return [(group, share) for group in GROUPS if (share := self._refused(group.has)).total]

    @property
    def sources(self) -> list[SourceKind]:
        """Each by itself; `generality` says how far they speak for sources that nobody has seen."""
        ordered = sorted(self.judged, key=_place)
        return [
            SourceKind(source, kind, label, share_of(one.is_refused for one in judged))
            for (label, source, kind), judged in groupby(ordered, key=_place)
        ]

    @property
    def worst(self) -> list[tuple[Group, str, Share]]:
        """The source that each group with a bar fares worst on."""
        return [(group, *self._worst(group)) for group, _ in self.groups if group.direction]

    @property
    def generality(self) -> list[Generality]:
        return measure_generality(self.judged)

    @property
    def changed(self) -> Share:
        """Benign texts that masking changes."""
        return share_of(one.is_changed for one in self.judged if not one.row.is_attack)

    @property
    def incomplete(self) -> Share:
        return share_of(not one.is_complete for one in self.judged)

    @property
    def bars(self) -> list[Bar]:
        return [*self._found_bars(), *self._robustness_bars(), *self._cost_bars()]

    @property
    def holds(self) -> bool:
        return all(bar.holds for bar in self.bars)

    def as_json(self) -> dict[str, object]:
        return {
            "pattern_set": self.pattern_set,
            "patterns": self.patterns,
            "rows": len(self.judged),
            "holds": self.holds,
            "bars": [bar.as_json() for bar in self.bars],
            "groups": {group.name: share.as_json() for group, share in self.groups},
            "generality": {one.group.name: one.as_json() for one in self.generality},
            "sources": [source.as_json() for source in self.sources],
            "worst": {group.name: {"source": source, **share.as_json()} for group, source, share in self.worst},
            "changed_by_masking": self.changed.as_json(),
            "incomplete": self.incomplete.as_json(),
            "robustness": self.robustness and self.robustness.as_json(),
            "costs": self.costs.as_json(),
            "refused_benign": {one.row.id: one.matched for one in self.judged if _is_lost(one)},
            "missed_attacks": [one.row.id for one in self.judged if one.row.is_attack and not one.is_refused],
        }

    def _refused(self, has: Callable[[Row], bool]) -> Share:
        return share_of(one.is_refused for one in self.judged if has(one.row))

    def _worst(self, group: Group) -> tuple[str, Share]:
        by_source: dict[str, list[bool]] = defaultdict(list)
        for one in self.judged:
            if group.has(one.row):
                by_source[one.row.source].append(one.is_refused)
        shares = {source: share_of(refused) for source, refused in sorted(by_source.items())}
        pick = max if group.direction == "at most" else min
        return pick(shares.items(), key=lambda found: found[1].value)

    def _found_bars(self) -> Iterable[Bar]:
        for group, share in self.groups:
            if group.direction:
                yield Bar(f"{group.name}: refused", 100 * share.value, group.direction, group.limit_percent, "%")
        if self.changed.total:
            yield Bar("benign texts: masked", 100 * self.changed.value, "at most", CHANGED_PERCENT_MAX, "%")

    def _robustness_bars(self) -> Iterable[Bar]:
        if self.robustness is None:
            return
        caught, kept = self.robustness.caught, self.robustness.kept
        if caught.total:
            yield Bar("caught attacks: in disguise too", 100 * caught.value, "at least", CAUGHT_PERCENT_MIN, "%")
        if kept.total:
            yield Bar("benign texts: verdict kept", 100 * kept.value, "at least", KEPT_PERCENT_MIN, "%")

    def _cost_bars(self) -> Iterable[Bar]:
        costs = self.costs
        yield Bar("scan and masking", costs.us_per_kb, "at most", US_PER_KB_MAX, "µs/KB")
        if costs.large_texts:
            yield Bar("text of 4 kB: p99", costs.large_p99_ms, "at most", LARGE_P99_MS_MAX, "ms")
        yield Bar("hostile 32 KiB: scan", costs.hostile_ms, "at most", HOSTILE_MS_MAX, "ms")
        yield Bar("hostile 32 KiB: event-loop lag", costs.lag_ms, "at most", LAG_MS_MAX, "ms")


def _place(one: Judged) -> tuple[int, str, str]:
    return one.row.label, one.row.source, one.row.kind


def _is_lost(one: Judged) -> bool:
    return not one.row.is_attack and one.is_refused
