"""Lessons about the same thing, in the tables: who is near, and what happens to those that are replaced.

Called under the scope lock, as `active_items` is; `domain/supersession` decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.common.active_items import deactivate
from libs.common.domain.supersession import (
    Nearness,
    Neighbour,
    Relations,
    Rival,
    Supersession,
    relate_nearest,
    relate_twins,
    supersede,
)
from libs.common.schema import HalfVector, memory_items, memory_vectors

NEIGHBOURS_MAX = 32
"""Looked at for one that says the same: such a one is as near as any can be."""


@dataclass(frozen=True)
class Newcomer:
    """A lesson that is about to be active, and where. `embedding`: by the model, as the database keeps it."""

    scope_id: int
    rival: Rival
    summary: str
    model_id: int
    embedding: object


async def decide(connection: AsyncConnection, new: Newcomer, nearness: Nearness) -> Supersession:
    """What it replaces, what replaces it, and whose variant it is; those that take part are locked."""
    relations = await _relate(connection, new, nearness)
    decision = supersede(new.rival, relations.rivals)
    return replace(decision, variant_of=relations.variant_of, variant_group=relations.variant_group)


async def _relate(connection: AsyncConnection, new: Newcomer, nearness: Nearness) -> Relations:
    if nearness.is_off:
        return Relations()
    if nearness.rule == "cosine":
        return Relations([one.rival for one in await _find_near(connection, new, nearness.similarity_min)])
    near = await _find_near(connection, new, nearness.similarity_min, limit=NEIGHBOURS_MAX)
    if not near:
        return Relations()
    if (twins := relate_twins(new.summary, near)) is not None:
        return twins
    nearest = max(near, key=lambda one: one.similarity)
    return relate_nearest(new.summary, nearest, await _find_similarity_elsewhere(connection, new, nearest))


async def _find_near(
    connection: AsyncConnection, new: Newcomer, similarity_min: float, limit: int | None = None
) -> list[Neighbour]:
    """Active lessons of the scope at least so near, locked in the order of their ids; the nearest, with a limit."""
    vectors, items = memory_vectors.c, memory_items.c
    distance = vectors.embedding.op("<#>")(sa.bindparam(None, new.embedding, type_=HalfVector()))
    near = (
        sa.select(vectors.item_id, (-distance).label("similarity"))
        .where(*_are_scanned(new), distance <= -similarity_min)
        .order_by(distance)
        .limit(limit)
        .subquery()
    )
    query = (
        sa.select(
            items.id,
            items.evidence_at,
            items.source_event_id,
            items.origin_tier,
            items.summary,
            items.variant_group,
            near.c.similarity,
        )
        .join(near, near.c.item_id == items.id)
        .order_by(items.id)
        .with_for_update(of=memory_items)
    )
    return [
        Neighbour(
            Rival(row.id, row.evidence_at, row.source_event_id, row.origin_tier),
            row.summary,
            row.similarity,
            row.variant_group,
        )
        for row in await connection.execute(query)
    ]


async def _find_similarity_elsewhere(connection: AsyncConnection, new: Newcomer, one: Neighbour) -> float:
    """How near the nearest of its other neighbours is, its own variants left out; -1: it has none."""
    vectors, items = memory_vectors.c, memory_items.c
    own = sa.select(vectors.embedding).filter_by(item_id=one.rival.id, model_id=new.model_id).scalar_subquery()
    variants = sa.select(items.id).where(items.variant_group == one.variant_group)
    others = (vectors.item_id != one.rival.id, vectors.item_id.not_in(variants))
    query = sa.select(sa.func.min(vectors.embedding.op("<#>")(own))).where(*_are_scanned(new), *others)
    distance = (await connection.execute(query)).scalar_one()
    return -1.0 if distance is None else -distance


def _are_scanned(new: Newcomer) -> tuple[sa.ColumnElement[bool], ...]:
    vectors = memory_vectors.c
    return vectors.scope_id == new.scope_id, vectors.model_id == new.model_id, vectors.active


async def replace_items(connection: AsyncConnection, scope_id: int, ids: Sequence[UUID], *, by: UUID) -> None:
    """Supersedes active items of the scope."""
    if not ids:
        return
    stamp = {"superseded_at": sa.func.now(), "superseded_by_id": by}
    await connection.execute(sa.update(memory_items).where(memory_items.c.id.in_(ids)).values(stamp))
    await deactivate(connection, scope_id, ids)


async def confirm_items(connection: AsyncConnection, ids: Sequence[UUID]) -> None:
    """Their age begins anew: another run has learned the same."""
    if not ids:
        return
    items, vectors = memory_items.c, memory_vectors.c
    await connection.execute(sa.update(memory_items).where(items.id.in_(ids)).values(confirmed_at=sa.func.now()))
    await connection.execute(sa.update(memory_vectors).where(vectors.item_id.in_(ids)).values(created_at=sa.func.now()))


async def name_group(connection: AsyncConnection, decision: Supersession) -> None:
    """Puts the item that the new one is a variant of into the group that it began."""
    if decision.variant_of is None:
        return
    items = memory_items.c
    first = sa.update(memory_items).where(items.id == decision.variant_of, items.variant_group.is_(None))
    await connection.execute(first.values(variant_group=decision.variant_group))
