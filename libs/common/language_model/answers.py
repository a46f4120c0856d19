"""What a model answered for an event in work: kept right after the call, gone when the event ends.

A crash, or an outage of what comes after the call, then costs no second one.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.database import outages_as_store_unavailable
from libs.common.schema import model_answers
from libs.common.tombstones import Work, find_buried


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """`answer` holds what the caller made of the model's text: bounded, and with credentials masked."""

    answer: dict[str, Any]
    model: str
    cost_usd: Decimal | None


class ModelAnswers:
    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def find_answer(self, tenant: str, event_id: str, purpose: str) -> KeptAnswer | None:
        query = sa.select(model_answers.c.answer, model_answers.c.model, model_answers.c.cost_usd)
        query = query.filter_by(tenant=tenant, event_id=event_id, purpose=purpose)
        with outages_as_store_unavailable():
            async with self._engine.connect() as connection:
                row = (await connection.execute(query)).one_or_none()
        return None if row is None else KeptAnswer(row.answer, row.model, row.cost_usd)

    async def keep_answer(self, tenant: str, event_id: str, purpose: str, kept: KeptAnswer) -> None:
        """The first one stays; of an event that was forgotten meanwhile none is kept."""
        row = {"tenant": tenant, "event_id": event_id, "purpose": purpose}
        row |= {"answer": kept.answer, "model": kept.model, "cost_usd": kept.cost_usd}
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                if await find_buried(connection, Work(tenant, events=[event_id])):
                    return
                await connection.execute(insert(model_answers).values(row).on_conflict_do_nothing())


async def delete_answers(connection: AsyncConnection, tenant: str, event_id: str) -> None:
    """In the transaction that ends the event."""
    await connection.execute(sa.delete(model_answers).filter_by(tenant=tenant, event_id=event_id))
