"""Lessons about the same thing, in the tables: who is near, and what happens to those that are replaced.

Called under the scope lock, as `active_items` is; `domain/supersession` decides.
"""

from collections.abc import Sequence
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.common.active_items import deactivate
from libs.common.domain.supersession import Rival
from libs.common.schema import HalfVector, memory_items, memory_vectors


async def find_rivals(
    connection: AsyncConnection, scope_id: int, model_id: int, embedding: object, *, similarity_min: float
) -> list[Rival]:
    """Active lessons of the scope at least so near, locked in the order of their ids; none where it takes 1."""
    if similarity_min >= 1:
        return []
    nearness = memory_vectors.c.embedding.op("<#>")(sa.bindparam(None, embedding, type_=HalfVector()))
    items = memory_items.c
    query = (
        sa.select(items.id, items.evidence_at, items.source_event_id, items.origin_tier)
        .join(memory_vectors, memory_vectors.c.item_id == items.id)
        .where(
            memory_vectors.c.scope_id == scope_id,
            memory_vectors.c.model_id == model_id,
            memory_vectors.c.active,
            nearness <= -similarity_min,
        )
        .order_by(items.id)
        .with_for_update(of=memory_items)
    )
    rows = (await connection.execute(query)).all()
    return [Rival(row.id, row.evidence_at, row.source_event_id, row.origin_tier) for row in rows]


async def replace_items(connection: AsyncConnection, scope_id: int, ids: Sequence[UUID], *, by: UUID) -> None:
    """Supersedes active items of the scope."""
    if not ids:
        return
    stamp = {"superseded_at": sa.func.now(), "superseded_by_id": by}
    await connection.execute(sa.update(memory_items).where(memory_items.c.id.in_(ids)).values(stamp))
    await deactivate(connection, scope_id, ids)
