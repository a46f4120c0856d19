"""The writer's statements: one transaction makes a lesson, or ends an event without one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa
from lorebus.contracts.events import LessonWritten, MemoryEvent, Superseded
from pgvector import HalfVector
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.active_items import activate, deactivate
from libs.common.database import lock_scope, outages_as_store_unavailable
from libs.common.domain.memory import screened_text, text_hash
from libs.common.inbox import Claim, Inbox, Outcome
from libs.common.outbox import insert_events
from libs.common.schema import gate_verdicts, memory_items, memory_vectors, scopes
from services.writer.lesson import Lesson
from services.writer.rules import Rival, Supersession, supersede


@dataclass(frozen=True)
class NewLesson:
    """A lesson that the gate has cleared, with its vector."""

    id: UUID
    tenant: str
    repository: str
    run_id: str
    workflow_id: str | None
    event_id: str
    evidence_at: datetime
    agent_key: str
    origin_tier: int
    lesson: Lesson
    terms: Sequence[str]
    pattern_set: str
    model_id: int
    embedding: npt.NDArray[np.float32]


class WriterStore:
    def __init__(self, engine: AsyncEngine, inbox: Inbox, supersede_similarity_min: float) -> None:
        self._engine = engine
        self._inbox = inbox
        self._supersede_similarity_min = supersede_similarity_min

    async def end_without_lesson(self, claim: Claim, outcome: Outcome, event: MemoryEvent) -> None:
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                await self._inbox.settle(connection, claim, outcome)
                await insert_events(connection, [event])

    async def insert_lesson(self, claim: Claim, new: NewLesson) -> Sequence[UUID]:
        """Stores the lesson, supersedes what it replaces, ends the event. Returns the replaced ids."""
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                scope_id = await self._get_scope_id(connection, new.tenant, new.repository)
                await lock_scope(connection, scope_id)
                near = await self._find_near(connection, scope_id, new)
                decision = supersede(Rival(new.id, new.evidence_at, new.event_id, new.origin_tier), near)
                await self._insert_item(connection, scope_id, new, decision)
                await self._supersede(connection, scope_id, decision.replaced, superseded_by=new.id)
                await self._inbox.settle(connection, claim, Outcome("written", item_ids=[new.id]))
                await insert_events(connection, _facts(new, decision))
        return decision.replaced

    async def _get_scope_id(self, connection: AsyncConnection, tenant: str, repository: str) -> int:
        key = {"tenant": tenant, "kind": "swe-lessons", "key": repository}
        await connection.execute(insert(scopes).values(key).on_conflict_do_nothing())
        query = sa.select(scopes.c.id).filter_by(**key)
        return (await connection.execute(query)).scalar_one()

    async def _find_near(self, connection: AsyncConnection, scope_id: int, new: NewLesson) -> list[Rival]:
        """Active lessons of the scope at or above the threshold, locked in the order of their ids."""
        if self._supersede_similarity_min >= 1:
            return []
        similarity = memory_vectors.c.embedding.op("<#>")(_half(new.embedding))
        query = (
            sa.select(
                memory_items.c.id,
                memory_items.c.evidence_at,
                memory_items.c.source_event_id,
                memory_items.c.origin_tier,
            )
            .join(memory_vectors, memory_vectors.c.item_id == memory_items.c.id)
            .where(
                memory_vectors.c.scope_id == scope_id,
                memory_vectors.c.model_id == new.model_id,
                memory_vectors.c.active,
                similarity <= -self._supersede_similarity_min,
            )
            .order_by(memory_items.c.id)
            .with_for_update(of=memory_items)
        )
        rows = (await connection.execute(query)).all()
        return [Rival(row.id, row.evidence_at, row.source_event_id, row.origin_tier) for row in rows]

    async def _insert_item(
        self, connection: AsyncConnection, scope_id: int, new: NewLesson, decision: Supersession
    ) -> None:
        verdict = {"tenant": new.tenant, "text_sha256": _hash(new), "pattern_set": new.pattern_set, "verdict": "clean"}
        await connection.execute(insert(gate_verdicts).values(verdict).on_conflict_do_nothing())
        is_active = decision.replaced_by is None
        item = _item_row(new) | verdict
        item |= {"scope_id": scope_id, "superseded_by_id": decision.replaced_by}
        item["superseded_at"] = None if is_active else sa.func.now()
        created = insert(memory_items).values(item).returning(memory_items.c.created_at)
        created_at = (await connection.execute(created)).scalar_one()
        vector = {"item_id": new.id, "model_id": new.model_id, "scope_id": scope_id, "created_at": created_at}
        vector |= {"active": False, "terms_total": len(new.terms), "embedding": _half(new.embedding)}
        await connection.execute(insert(memory_vectors).values(vector))
        if is_active:
            await activate(connection, scope_id, [new.id])

    async def _supersede(
        self, connection: AsyncConnection, scope_id: int, ids: Sequence[UUID], *, superseded_by: UUID
    ) -> None:
        if not ids:
            return
        stamp = {"superseded_at": sa.func.now(), "superseded_by_id": superseded_by}
        await connection.execute(sa.update(memory_items).where(memory_items.c.id.in_(ids)).values(stamp))
        await deactivate(connection, scope_id, ids)


def _half(embedding: npt.NDArray[np.float32]) -> HalfVector:
    return HalfVector(embedding)


def _hash(new: NewLesson) -> str:
    return text_hash(screened_text(new.lesson.summary, new.lesson.rationale))


def _item_row(new: NewLesson) -> dict[str, Any]:
    return {
        "id": new.id,
        "tenant": new.tenant,
        "summary": new.lesson.summary,
        "rationale": new.lesson.rationale,
        "failure_type": new.lesson.failure_type,
        "confidence": new.lesson.confidence,
        "origin_tier": new.origin_tier,
        "workflow_id": new.workflow_id,
        "run_id": new.run_id,
        "agent_key": new.agent_key,
        "metadata": new.lesson.metadata,
        "terms": list(new.terms),
        "source_event_id": new.event_id,
        "evidence_at": new.evidence_at,
    }


def _facts(new: NewLesson, decision: Supersession) -> list[MemoryEvent]:
    replaced = [str(id_) for id_ in decision.replaced]
    written = LessonWritten(
        tenant=new.tenant,
        event_id=new.event_id,
        run_id=new.run_id,
        repository=new.repository,
        id=str(new.id),
        failure_type=new.lesson.failure_type,
        superseded=replaced,
    )
    pairs = [(replaced, str(new.id))] if replaced else []
    if decision.replaced_by:
        pairs.append(([str(new.id)], str(decision.replaced_by)))
    return [
        written,
        *(Superseded(tenant=new.tenant, repository=new.repository, ids=ids, superseded_by=by) for ids, by in pairs),
    ]
