"""The writer's statements: one transaction makes a lesson, or ends an event without one."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from lorebus.contracts.facts.fact import MemoryEvent
from lorebus.contracts.facts.writer import LessonHeld, LessonWritten, Superseded
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.database import lock_scope, outages_as_store_unavailable
from libs.common.domain.supersession import Supersession
from libs.common.embedding.serving import hold_serving
from libs.common.event_copies import erase_message
from libs.common.inbox import Claim, Inbox, Outcome
from libs.common.outbox import insert_events
from libs.common.schema import inbox, memory_items
from libs.common.tombstones import FORGOTTEN, bury, find_buried
from services.writer.channels.sources import ChannelSource, build_channel_written
from services.writer.ending import end_event
from services.writer.entries import EntrySource, build_written
from services.writer.origins import count_refusal, find_quarantine_end
from services.writer.refusals import build_forgotten
from services.writer.rows import Kept, NewLesson, get_scope_id, store_item, work_of
from services.writer.rules import Source


class WriterStore:
    def __init__(self, engine: AsyncEngine, inbox: Inbox) -> None:
        self._engine = engine
        self._inbox = inbox

    async def end_without_lesson(self, claim: Claim, outcome: Outcome, facts: Sequence[MemoryEvent]) -> None:
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                await end_event(connection, self._inbox, claim, outcome)
                await insert_events(connection, facts)

    async def refuse_lesson(
        self, claim: Claim, source: Source, patterns: Sequence[str], facts: Sequence[MemoryEvent]
    ) -> Outcome:
        """Ends the event as an attack, and counts that against its origin."""
        outcome = Outcome("refused", "matched", patterns=patterns)
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                await end_event(connection, self._inbox, claim, outcome)
                quarantined = await count_refusal(connection, source, patterns)
                await insert_events(connection, [*facts, quarantined] if quarantined else facts)
        return outcome

    async def find_quarantine_end(self, source: Source) -> datetime | None:
        """Until when nothing of the source's origin is taken; None: it is free."""
        with outages_as_store_unavailable():
            async with self._engine.connect() as connection:
                return await find_quarantine_end(connection, source)

    async def insert_lesson(self, claim: Claim, new: NewLesson, facts: Sequence[MemoryEvent]) -> Kept | Outcome:
        """Stores the lesson, supersedes what it replaces unless it is held, ends the event.

        What was forgotten meanwhile is not stored: its event ends as skipped.
        """
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                await hold_serving(connection, new.vectors.model_id)
                scope_id = await get_scope_id(connection, new.source)
                await lock_scope(connection, scope_id)
                if await find_buried(connection, work_of(new)):
                    return await self._end_forgotten(connection, claim, new.source)
                created_at, decision = await store_item(connection, scope_id, new)
                await end_event(connection, self._inbox, claim, Outcome("written", item_ids=[new.id]))
                await insert_events(connection, [*facts, *_facts(new, decision)])
        return Kept(new.id, created_at, decision.replaced, new.is_held)

    async def find_kept(self, source: Source) -> Kept | None:
        """The lesson that this event made."""
        query = sa.select(memory_items.c.id, memory_items.c.created_at, memory_items.c.held_at)
        with outages_as_store_unavailable():
            async with self._engine.connect() as connection:
                row = (
                    await connection.execute(query.filter_by(tenant=source.tenant, source_event_id=source.key))
                ).one_or_none()
        return Kept(row.id, row.created_at, is_held=row.held_at is not None) if row else None

    async def get_outcome(self, source: Source) -> Outcome:
        """How this event ended."""
        query = sa.select(inbox.c.status, inbox.c.reason, inbox.c.patterns, inbox.c.item_ids)
        event = {"tenant": source.tenant, "schema_name": source.schema_name, "event_id": source.event_id}
        with outages_as_store_unavailable():
            async with self._engine.connect() as connection:
                return Outcome(**(await connection.execute(query.filter_by(**event))).mappings().one())

    async def _end_forgotten(self, connection: AsyncConnection, claim: Claim, source: Source) -> Outcome:
        """Nor may its message come again, or lie in its stream."""
        outcome = Outcome("skipped", FORGOTTEN)
        await end_event(connection, self._inbox, claim, outcome)
        await bury(connection, source.tenant, {"event": [source.key]})
        await erase_message(connection, claim.receipt)
        await insert_events(connection, [build_forgotten(source)])
        return outcome


def _facts(new: NewLesson, decision: Supersession) -> list[MemoryEvent]:
    source = new.source
    if isinstance(source, EntrySource):
        return [build_written(source, new.id, is_held=new.is_held)]
    if isinstance(source, ChannelSource):
        return [build_channel_written(source, new.id, decision, is_held=new.is_held)]
    about: dict[str, Any] = {
        "tenant": source.tenant,
        "event_id": source.event_id,
        "run_id": source.run_id,
        "repository": source.repository,
        "written_by": source.agent_key,
        "id": str(new.id),
        "failure_type": new.draft.lesson.failure_type,
    }
    if new.is_held:
        return [LessonHeld(**about, patterns=list(new.watched))]
    replaced = [str(id_) for id_ in decision.replaced]
    pairs = [(replaced, str(new.id))] if replaced else []
    if decision.replaced_by:
        pairs.append(([str(new.id)], str(decision.replaced_by)))
    written = LessonWritten(**about, superseded=replaced, watched=list(new.watched))
    return [written, *(_superseded(source, ids, by) for ids, by in pairs)]


def _superseded(source: Source, ids: list[str], by: str) -> Superseded:
    return Superseded(tenant=source.tenant, repository=source.repository, ids=ids, superseded_by=by)
