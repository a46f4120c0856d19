"""The statements of passive ingestion: the cursor moves, and the facts of one page are stored together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

import sqlalchemy as sa
from lorebus.contracts.facts.channels import ChannelIngested
from lorebus.contracts.facts.fact import MemoryEvent
from pgvector import HalfVector as HalfVectorValue
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.channels import Channel
from libs.common.database import lock_scope, outages_as_store_unavailable
from libs.common.embedding.serving import TextVectors, hold_serving
from libs.common.event_copies import erase_message
from libs.common.inbox import Claim, Inbox, Outcome
from libs.common.outbox import insert_events
from libs.common.schema import HalfVector, channels, ingest_windows, memory_vectors
from libs.common.tombstones import find_buried
from services.writer.channels.pages import order_of
from services.writer.channels.sources import ChannelSource, build_channel_written
from services.writer.ending import end_event
from services.writer.refusals import build_forgotten
from services.writer.rows import NewLesson, get_scope_id, store_item, work_of


@dataclass(frozen=True, slots=True)
class Batch:
    """What a page came to, before its transaction. `cosine_max`: a fact at least so near to a note is known."""

    source: ChannelSource
    facts: Sequence[NewLesson]
    cosine_max: float
    told: ChannelIngested
    refused: Sequence[MemoryEvent] = ()


class ChannelStore:
    """Every method raises StoreUnavailable."""

    def __init__(self, engine: AsyncEngine, inbox: Inbox) -> None:
        self._engine = engine
        self._inbox = inbox

    async def find_start(self, channel: Channel, key: str) -> str | None:
        """Where this event begins to read: behind the cursor, or where it began when it was first in work."""
        query = sa.select(ingest_windows.c.after).filter_by(tenant=channel.tenant, event_id=key)
        with outages_as_store_unavailable():
            async with self._engine.connect() as connection:
                row = (await connection.execute(query)).one_or_none()
        return channel.ingest_cursor if row is None else row.after

    async def move_cursor(self, channel: Channel, key: str, after: str | None, cursor: str) -> None:
        """Forwards only. The window is written down with it, so that a page in work is read again, and no other is."""
        window = {"tenant": channel.tenant, "event_id": key, "after": after}
        mine = {"tenant": channel.tenant, "key": channel.key}
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                await connection.execute(insert(ingest_windows).values(window).on_conflict_do_nothing())
                query = sa.select(channels.c.ingest_cursor).filter_by(**mine).with_for_update()
                stands = (await connection.execute(query)).scalar_one()
                if stands is None or order_of(stands) < order_of(cursor):
                    await connection.execute(sa.update(channels).filter_by(**mine).values(ingest_cursor=cursor))

    async def end_unread(self, claim: Claim, outcome: Outcome, facts: Sequence[MemoryEvent] = ()) -> Outcome:
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                await self._end(connection, claim, outcome)
                await insert_events(connection, facts)
        return outcome

    async def _end(self, connection: AsyncConnection, claim: Claim, outcome: Outcome) -> None:
        """What people wrote to each other does not stay in its stream, where no erasure would find it."""
        await end_event(connection, self._inbox, claim, outcome)
        await erase_message(connection, claim.receipt)

    async def insert_facts(self, claim: Claim, batch: Batch) -> Outcome:
        """Stores those that the channel does not know and nobody had forgotten; ends the event."""
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                if batch.facts:
                    await hold_serving(connection, batch.facts[0].vectors.model_id)
                scope_id = await get_scope_id(connection, batch.source)
                await lock_scope(connection, scope_id)
                stored = [await _store_fact(connection, scope_id, new, batch.cosine_max) for new in batch.facts]
                written = [one.id for one in stored if one.id is not None]
                counts = {"facts_written": len(written), "duplicates": sum(one.is_known for one in stored)}
                outcome = Outcome("written", item_ids=written) if written else Outcome("skipped", "no_facts")
                await self._end(connection, claim, outcome)
                events = [event for one in stored for event in one.events]
                await insert_events(connection, [*batch.refused, *events, batch.told.model_copy(update=counts)])
        return outcome


@dataclass(frozen=True, slots=True)
class _Stored:
    """What became of one fact. `id` None: it is not stored."""

    id: UUID | None = None
    is_known: bool = False
    events: Sequence[MemoryEvent] = ()


async def _store_fact(connection: AsyncConnection, scope_id: int, new: NewLesson, cosine_max: float) -> _Stored:
    source = cast("ChannelSource", new.source)
    if await find_buried(connection, work_of(new)):
        return _Stored(events=[build_forgotten(source)])
    if await _is_known(connection, scope_id, new.vectors, cosine_max):
        return _Stored(is_known=True)
    _, decision = await store_item(connection, scope_id, new)
    return _Stored(new.id, events=[build_channel_written(source, new.id, decision, is_held=new.is_held)])


async def _is_known(connection: AsyncConnection, scope_id: int, vectors: TextVectors, cosine_max: float) -> bool:
    """Whether an active note of the channel, one of this very page too, is as near."""
    columns: Any = memory_vectors.c
    embedding = sa.bindparam(None, HalfVectorValue(vectors.embedding), type_=HalfVector())
    near = columns.embedding.op("<#>")(embedding) <= -cosine_max
    query = sa.select(sa.literal(1)).where(
        columns.scope_id == scope_id, columns.model_id == vectors.model_id, columns.active, near
    )
    return (await connection.execute(query.limit(1))).one_or_none() is not None
