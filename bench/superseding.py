"""What becomes of the lessons of a scope when a further one comes, as the writer does it, all being of one tier."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import NAMESPACE_OID, UUID, uuid5

import numpy as np
import numpy.typing as npt

from libs.common.domain.supersession import Nearness, Neighbour, Relations, Rival, relate_nearest, relate_twins

Vectors = npt.NDArray[np.float32]
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Item:
    run_id: str
    summary: str
    vector: Vectors
    terms: frozenset[str]
    fingerprints: frozenset[int]
    group: UUID | None = None

    @property
    def rival(self) -> Rival:
        return Rival(uuid5(NAMESPACE_OID, self.run_id), LONG_AGO, self.run_id, 2)


def add_item(active: Sequence[Item], item: Item, nearness: Nearness) -> list[Item]:
    """The active items with the new one, without those that it replaces."""
    related = _relate(active, item, nearness)
    replaced = {rival.id for rival in related.rivals}
    kept = [
        replace(other, group=related.variant_group) if other.rival.id == related.variant_of else other
        for other in active
        if other.rival.id not in replaced
    ]
    return [*kept, replace(item, group=related.variant_group)]


def _relate(active: Sequence[Item], item: Item, nearness: Nearness) -> Relations:
    near = [
        Neighbour(other.rival, other.summary, similarity, other.group)
        for other in active
        if (similarity := float(other.vector @ item.vector)) >= nearness.similarity_min
    ]
    if nearness.rule == "cosine" or not near:
        return Relations([one.rival for one in near])
    if (twins := relate_twins(item.summary, near)) is not None:
        return twins
    nearest = max(near, key=lambda one: one.similarity)
    [itself] = [other for other in active if other.rival == nearest.rival]
    others = [
        other for other in active if other is not itself and (itself.group is None or other.group != itself.group)
    ]
    elsewhere = [float(other.vector @ itself.vector) for other in others]
    return relate_nearest(item.summary, nearest, max(elsewhere, default=-1.0))
