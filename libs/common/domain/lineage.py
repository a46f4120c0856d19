"""What goes and what comes back when memories are forgotten (spec 7): a walk over who was made from whom.

A merged memory holds the words of its sources, so they share one fate: a forgotten merge takes its sources along, a
forgotten source takes every merge that it is in. The other sources of such a merge come back, unless a merge that stays
still stands for them; so does what a forgotten memory had superseded. Sources are followed from the targets alone: the
neighbours of a forgotten source said something else.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from lorebus.errors import LorebusError

ROUNDS_MAX = 32
"""Of merges of merges, each way."""


class LineageTooDeep(LorebusError):
    """More merges of merges than a walk follows. Forgetting a part of them would leave copies of the rest."""


@dataclass(frozen=True, slots=True)
class Item:
    """A memory as lineage knows it. `superseded_by` may be gone already, and leave it superseded all the same."""

    id: UUID
    superseded_by: UUID | None = None
    is_superseded: bool = False
    is_consolidated: bool = False
    is_held: bool = False

    @property
    def is_active(self) -> bool:
        return not (self.is_superseded or self.is_consolidated or self.is_held)


@dataclass(frozen=True, slots=True)
class Lineage:
    """Whatever is linked to the targets: the memories, and the sources of each merged one."""

    items: Mapping[UUID, Item]
    sources: Mapping[UUID, Collection[UUID]]


@dataclass(frozen=True, slots=True)
class Forgetting:
    """`deleted`: the targets first. `restored` says what was done, not what shows: see `reactivated`."""

    deleted: Sequence[UUID] = ()
    unconsolidated: Sequence[UUID] = ()
    """Sources that no merge stands for any more: `consolidated_at` is cleared."""
    unsuperseded: Sequence[UUID] = ()
    """What a deleted memory had replaced: both columns are cleared before the delete, which would clear but one."""
    reactivated: Sequence[UUID] = ()
    """Those of both that were hidden and no longer are."""

    @property
    def restored(self) -> list[UUID]:
        """A row that comes back from a merge and is superseded by one that stays is in it, though it stays hidden."""
        return list(dict.fromkeys([*self.unconsolidated, *self.unsuperseded]))


def plan_forgetting(lineage: Lineage, targets: Iterable[UUID]) -> Forgetting:
    """Targets that are no memories count for nothing. Raises LineageTooDeep."""
    known = [target for target in dict.fromkeys(targets) if target in lineage.items]
    merges_of = _turn_around(lineage.sources)
    down = _walk(known, lineage.sources)
    deleted = _walk(down, merges_of)
    gone = frozenset(deleted)
    retracted = deleted[len(down) :]
    unconsolidated = [
        source
        for source in _unique(source for merge in retracted for source in sorted(lineage.sources.get(merge, ())))
        if source not in gone and gone.issuperset(merges_of[source])
    ]
    replaced = (item for item in lineage.items.values() if item.superseded_by in gone and item.id not in gone)
    unsuperseded = sorted(item.id for item in replaced)
    plan = Forgetting(deleted, unconsolidated, unsuperseded)
    return Forgetting(deleted, unconsolidated, unsuperseded, _find_reactivated(lineage, plan))


def _walk(start: Sequence[UUID], links: Mapping[UUID, Collection[UUID]]) -> list[UUID]:
    """Everything within reach, the start first, then round by round."""
    reached = dict.fromkeys(start)
    edge: Sequence[UUID] = start
    for _ in range(ROUNDS_MAX + 1):
        edge = sorted({link for id_ in edge for link in links.get(id_, ()) if link not in reached})
        if not edge:
            return list(reached)
        reached |= dict.fromkeys(edge)
    raise LineageTooDeep(f"more than {ROUNDS_MAX} merges stand on each other here")


def _turn_around(sources: Mapping[UUID, Collection[UUID]]) -> dict[UUID, list[UUID]]:
    merges: dict[UUID, list[UUID]] = {}
    for merge, parts in sources.items():
        for part in parts:
            merges.setdefault(part, []).append(merge)
    return merges


def _unique(ids: Iterable[UUID]) -> list[UUID]:
    return list(dict.fromkeys(ids))


def _find_reactivated(lineage: Lineage, plan: Forgetting) -> list[UUID]:
    back = [lineage.items[id_] for id_ in plan.restored if id_ in lineage.items]
    unconsolidated, unsuperseded = set(plan.unconsolidated), set(plan.unsuperseded)
    return [
        item.id
        for item in back
        if not item.is_active
        and not item.is_held
        and (not item.is_consolidated or item.id in unconsolidated)
        and (not item.is_superseded or item.id in unsuperseded)
    ]
