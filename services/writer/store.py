"""The writer's statements: one transaction makes a lesson, or ends an event without one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from lorebus.contracts.facts.fact import MemoryEvent
from lorebus.contracts.facts.writer import LessonHeld, LessonWritten, Superseded
from lorebus.contracts.subjects import RUN_FINISHED
from pgvector import HalfVector
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.active_items import activate
from libs.common.database import lock_scope, outages_as_store_unavailable
from libs.common.domain.memory import item_id_for, screened_text, text_hash
from libs.common.domain.supersession import Nearness, Rival, Supersession
from libs.common.embedding.serving import TextVectors, hold_serving
from libs.common.event_copies import erase_message
from libs.common.fingerprints import insert_fingerprints
from libs.common.inbox import Claim, Inbox, Outcome
from libs.common.language_model.answers import delete_answers
from libs.common.outbox import insert_events
from libs.common.rivals import Newcomer, confirm_items, decide, name_group, replace_items
from libs.common.schema import gate_verdicts, inbox, memory_items, scopes
from libs.common.tombstones import FORGOTTEN, Work, bury, find_buried
from libs.common.vectors import MEMORY, insert_vectors
from services.writer.entries import EntrySource, build_written, insert_entry
from services.writer.origins import count_refusal, find_quarantine_end
from services.writer.parts import delete_parts
from services.writer.refusals import build_forgotten
from services.writer.rules import Draft, Source


@dataclass(frozen=True)
class NewLesson:
    """A lesson that the gate has cleared, with its vectors."""

    source: Source
    draft: Draft
    pattern_set: str
    vectors: TextVectors
    nearness: Nearness
    """What is near enough to be about the same thing."""
    watched: Sequence[str] = ()
    """Patterns that only watch and matched."""
    is_held: bool = False
    """Not recalled, and in nobody's way, until an administrator releases it."""

    told_at: datetime | None = None
    """When the event came, by the broker's clock."""

    @property
    def id(self) -> UUID:
        return item_id_for(self.source.tenant, self.source.key)


@dataclass(frozen=True)
class Kept:
    """A stored lesson."""

    id: UUID
    created_at: datetime
    replaced: Sequence[UUID] = ()
    is_held: bool = False


class WriterStore:
    def __init__(self, engine: AsyncEngine, inbox: Inbox) -> None:
        self._engine = engine
        self._inbox = inbox

    async def end_without_lesson(self, claim: Claim, outcome: Outcome, facts: Sequence[MemoryEvent]) -> None:
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                await self._end(connection, claim, outcome)
                await insert_events(connection, facts)

    async def refuse_lesson(
        self, claim: Claim, source: Source, patterns: Sequence[str], facts: Sequence[MemoryEvent]
    ) -> Outcome:
        """Ends the event as an attack, and counts that against its origin."""
        outcome = Outcome("refused", "matched", patterns=patterns)
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                await self._end(connection, claim, outcome)
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
                scope_id = await self._get_scope_id(connection, new.source)
                await lock_scope(connection, scope_id)
                if await find_buried(connection, _work(new)):
                    return await self._end_forgotten(connection, claim, new.source)
                decision = await self._decide(connection, scope_id, new)
                created_at = await self._insert_item(connection, scope_id, new, decision)
                await replace_items(connection, scope_id, decision.replaced, by=new.id)
                await confirm_items(connection, decision.confirmed)
                await name_group(connection, decision)
                await self._end(connection, claim, Outcome("written", item_ids=[new.id]))
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

    async def _end(self, connection: AsyncConnection, claim: Claim, outcome: Outcome) -> None:
        """Makes the event terminal; what was kept for its work alone goes."""
        tenant, event_id = claim.receipt.tenant, claim.receipt.event_id
        await self._inbox.settle(connection, claim, outcome)
        if claim.receipt.schema_name == RUN_FINISHED:
            await delete_parts(connection, tenant, event_id)
            await delete_answers(connection, tenant, event_id)

    async def _end_forgotten(self, connection: AsyncConnection, claim: Claim, source: Source) -> Outcome:
        """Nor may its message come again, or lie in its stream."""
        outcome = Outcome("skipped", FORGOTTEN)
        await self._end(connection, claim, outcome)
        await bury(connection, source.tenant, {"event": [source.key]})
        await erase_message(connection, claim.receipt)
        await insert_events(connection, [build_forgotten(source)])
        return outcome

    async def _get_scope_id(self, connection: AsyncConnection, source: Source) -> int:
        key = {"tenant": source.tenant, "kind": source.scope_kind, "key": source.repository}
        await connection.execute(insert(scopes).values(key).on_conflict_do_nothing())
        await self._set_owner(connection, key, source)
        query = sa.select(scopes.c.id).filter_by(**key)
        return (await connection.execute(query)).scalar_one()

    async def _set_owner(self, connection: AsyncConnection, key: dict[str, str], source: Source) -> None:
        """The repository belongs to the team and organization that its latest run named."""
        named = {"team_id": source.team_id, "org_id": source.org_id}
        owner = {column: name for column, name in named.items() if name is not None}
        if owner:
            is_new = sa.or_(*(scopes.c[column].is_distinct_from(name) for column, name in owner.items()))
            await connection.execute(sa.update(scopes).filter_by(**key).where(is_new).values(owner))

    async def _decide(self, connection: AsyncConnection, scope_id: int, new: NewLesson) -> Supersession:
        if new.is_held:
            return Supersession()
        embedding = HalfVector(new.vectors.embedding)
        newcomer = Newcomer(scope_id, _rival(new), new.draft.lesson.summary, new.vectors.model_id, embedding)
        return await decide(connection, newcomer, new.nearness)

    async def _insert_item(
        self, connection: AsyncConnection, scope_id: int, new: NewLesson, decision: Supersession
    ) -> datetime:
        verdict = {
            "tenant": new.source.tenant,
            "text_sha256": _hash(new),
            "pattern_set": new.pattern_set,
            "verdict": "clean",
        }
        await connection.execute(insert(gate_verdicts).values(verdict).on_conflict_do_nothing())
        is_active = decision.replaced_by is None and not new.is_held
        item = _item_row(new) | verdict
        item |= {"scope_id": scope_id, "superseded_by_id": decision.replaced_by}
        item["variant_group"] = decision.variant_group
        item["superseded_at"] = sa.func.now() if decision.replaced_by else None
        if new.is_held:
            item |= {"held_at": sa.func.now(), "held_patterns": list(new.watched)}
        created = insert(memory_items).values(item).returning(memory_items.c.created_at)
        created_at = (await connection.execute(created)).scalar_one()
        vectors = {new.vectors.model_id: new.vectors.embedding, **new.vectors.further}
        await insert_vectors(connection, MEMORY, [(new.id, model_id, row) for model_id, row in vectors.items()])
        await insert_fingerprints(connection, scope_id, new.id, new.draft.fingerprints)
        if isinstance(new.source, EntrySource):
            await insert_entry(connection, new.source, new.id)
        if is_active:
            await activate(connection, scope_id, [new.id])
        return created_at


def _rival(new: NewLesson) -> Rival:
    return Rival(new.id, new.source.evidence_at, new.source.key, new.draft.origin_tier)


def _work(new: NewLesson) -> Work:
    source = new.source
    session_id = source.session_id if isinstance(source, EntrySource) else None
    return Work(
        tenant=source.tenant,
        events=[source.key],
        items=[new.id],
        persons=source.authors,
        sessions=[session_id] if session_id is not None else [],
        told_at=new.told_at,
    )


def _hash(new: NewLesson) -> str:
    return text_hash(screened_text(new.draft.lesson.summary, new.draft.lesson.rationale))


def _item_row(new: NewLesson) -> dict[str, Any]:
    source, draft, lesson = new.source, new.draft, new.draft.lesson
    return {
        "id": new.id,
        "tenant": source.tenant,
        "summary": lesson.summary,
        "rationale": lesson.rationale,
        "failure_type": lesson.failure_type,
        "confidence": lesson.confidence,
        "origin_tier": draft.origin_tier,
        "workflow_id": source.workflow_id,
        "run_id": source.run_id,
        "agent_key": source.agent_key,
        "model": draft.model,
        "cost_usd": draft.cost_usd,
        "metadata": lesson.metadata,
        "terms": list(draft.terms),
        "authors": list(source.authors),
        "source_event_id": source.key,
        "evidence_at": source.evidence_at,
    }


def _facts(new: NewLesson, decision: Supersession) -> list[MemoryEvent]:
    source = new.source
    if isinstance(source, EntrySource):
        return [build_written(source, new.id, is_held=new.is_held)]
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
