"""Which errors the evidence of an item held, in the table: written once, whether the item is active or not."""

from collections.abc import Sequence
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.common.schema import memory_fingerprints


async def insert_fingerprints(
    connection: AsyncConnection, scope_id: int, item_id: UUID, fingerprints: Sequence[int]
) -> None:
    rows = [{"scope_id": scope_id, "item_id": item_id, "fingerprint": one} for one in fingerprints]
    if rows:
        await connection.execute(sa.insert(memory_fingerprints), rows)


async def copy_fingerprints(
    connection: AsyncConnection, scope_id: int, item_id: UUID, source_ids: Sequence[UUID]
) -> None:
    """A merged item is found by the errors of all its sources."""
    columns = memory_fingerprints.c
    held = sa.select(sa.literal(scope_id), columns.fingerprint, sa.literal(item_id)).distinct()
    of_sources = held.where(columns.scope_id == scope_id, columns.item_id.in_(source_ids))
    copied = insert(memory_fingerprints).from_select(["scope_id", "fingerprint", "item_id"], of_sources)
    await connection.execute(copied.on_conflict_do_nothing())
