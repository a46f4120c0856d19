"""Transcript parts that were put ahead of their event: kept as carried until it ends (contract 2.1)."""

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.database import outages_as_store_unavailable
from libs.common.schema import evidence_parts, model_answers
from libs.common.tombstones import Work, find_buried


@dataclass(frozen=True, slots=True)
class Part:
    tenant: str
    event_id: str
    sha256: str
    data: bytes


class Parts:
    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def insert_part(self, part: Part, bytes_max: int) -> bool:
        """False where the event's parts would then hold more than so many bytes. A known part is taken again."""
        size = sa.func.coalesce(sa.func.sum(sa.func.octet_length(evidence_parts.c.data)), 0)
        others = sa.select(size).filter_by(tenant=part.tenant, event_id=part.event_id)
        row = {"tenant": part.tenant, "event_id": part.event_id, "sha256": part.sha256, "data": part.data}
        new = insert(evidence_parts).values(row)
        # Fresh again: a publisher that puts a part once more is about to publish.
        again = new.on_conflict_do_update(
            index_elements=list(evidence_parts.primary_key), set_={"created_at": sa.func.now()}
        )
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                if await find_buried(connection, Work(part.tenant, events=[part.event_id])):
                    return True  # taken, and not kept: its event will not be worked on any more
                held = (await connection.execute(others.where(evidence_parts.c.sha256 != part.sha256))).scalar_one()
                if held + len(part.data) > bytes_max:
                    return False
                await connection.execute(again)
        return True

    async def find_part(self, tenant: str, event_id: str, sha256: str) -> bytes | None:
        query = sa.select(evidence_parts.c.data).filter_by(tenant=tenant, event_id=event_id, sha256=sha256)
        with outages_as_store_unavailable():
            async with self._engine.connect() as connection:
                return (await connection.execute(query)).scalar_one_or_none()

    async def find_tenants(self) -> Sequence[str]:
        """Who has something kept for an event in work."""
        query = sa.select(evidence_parts.c.tenant).union(sa.select(model_answers.c.tenant))
        with outages_as_store_unavailable():
            async with self._engine.connect() as connection:
                return (await connection.execute(query)).scalars().all()

    async def delete_older(self, tenant: str, age_days: int) -> int:
        """What was kept for events that never came, or that became dead letters. Returns how much."""
        deleted = 0
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                for table in (evidence_parts, model_answers):
                    old = table.c.created_at < sa.func.now() - sa.func.make_interval(0, 0, 0, age_days)
                    gone = await connection.execute(sa.delete(table).filter_by(tenant=tenant).where(old))
                    deleted += gone.rowcount
        return deleted


async def delete_parts(connection: AsyncConnection, tenant: str, event_id: str) -> None:
    """In the transaction that ends the event."""
    await connection.execute(sa.delete(evidence_parts).filter_by(tenant=tenant, event_id=event_id))
