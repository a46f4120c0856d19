"""The outbox: facts are written in the transaction that makes them true, and told by the relay afterwards."""

from collections.abc import Sequence

import sqlalchemy as sa
from lorebus.contracts.facts.fact import MemoryEvent
from lorebus.contracts.subjects import event_subject
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.common.schema import outbox


async def insert_events(connection: AsyncConnection, events: Sequence[MemoryEvent]) -> None:
    """Queues facts for the taps, in order."""
    if not events:
        return
    rows = [
        {
            "subject": event_subject(event.kind, event.tenant),
            "payload": {"kind": event.kind, **event.model_dump(mode="json", exclude={"at"})},
        }
        for event in events
    ]
    await connection.execute(sa.insert(outbox), rows)


async def insert_message(connection: AsyncConnection, subject: str, payload: dict[str, object]) -> None:
    """Queues a message for another subject, such as the pointer to a dead letter."""
    await connection.execute(sa.insert(outbox).values(subject=subject, payload=payload))
