"""Recall's statements: they read the memory tables; only the journal writes."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast
from uuid import UUID

import asyncpg
import numpy as np
import numpy.typing as npt
import sqlalchemy as sa
from lorebus.contracts.facts.fact import MemoryEvent
from pgvector import HalfVector
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.administered_settings import CACHE_SECONDS
from libs.common.database import outages_as_store_unavailable
from libs.common.domain.calibration import Background
from libs.common.domain.lexical import COMMON_FROM_SIZE, COMMON_SHARE
from libs.common.domain.relevance import SAME_FAILURE_LIFT, TERMS_TYPICAL, WORDS_WEIGHT
from libs.common.domain.setting_cascade import Owner
from libs.common.outbox import insert_events
from libs.common.schema import memory_items, memory_sources, recall_log, scopes
from services.recall.rules import Bars, Found, ScopeName, Stored, tighten
from services.recall.statement import FIND_SCOPE, NEWEST, RECALL, tagged

SCOPES_REMEMBERED_MAX = 10_000

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Question:
    """A prepared query with its limits, as the statement takes it."""

    scope: ScopeName
    model_id: int
    vector: Vector
    terms: Sequence[str]
    terms_known: Sequence[int]
    """In how many background texts each term occurs."""
    background_size: int
    created_after: datetime
    background: Background
    """Of the query's cosines to texts that have nothing to do with it."""
    bars: Bars
    limit: int
    tier_min: int = 0
    fingerprints: Sequence[int] = ()
    is_blind: bool = False
    """No vector is asked with: `vector` has no direction, so that every item is as near."""
    tags: Sequence[str] = ()
    """Any of them; none: all items."""


def statement_values(question: Question, scope_id: int) -> tuple[object, ...]:
    """What the recall statement's $1 to $20 stand for."""
    return (
        question.scope.tenant,
        scope_id,
        question.model_id,
        HalfVector(question.vector),
        question.created_after,
        question.terms,
        question.terms_known,
        question.background_size,
        question.background.mean,
        question.background.deviation,
        question.bars.cosine_min,
        question.bars.coverage_min,
        question.limit,
        COMMON_FROM_SIZE,
        COMMON_SHARE,
        WORDS_WEIGHT,
        TERMS_TYPICAL,
        question.tier_min,
        question.fingerprints,
        SAME_FAILURE_LIFT,
    )


@dataclass(frozen=True, slots=True)
class KnownScope:
    """A scope's number, which it keeps for ever, its owner and how many items it has, which may change."""

    id: int
    owner: Owner
    size: int
    seen_at: float


@dataclass(frozen=True)
class RecallRecord:
    """What one recall gave: ids, never text."""

    scope: ScopeName
    run_id: str | None
    agent: str | None
    item_ids: Sequence[UUID]
    dropped_ids: Sequence[UUID]
    events: Sequence[MemoryEvent]


class RecallStore:
    """`pool` carries the recall statement, `engine` everything that is asked less often."""

    def __init__(
        self, engine: AsyncEngine, pool: asyncpg.Pool, timeout_seconds: float, *, cache_seconds: float = CACHE_SECONDS
    ) -> None:
        self._engine = engine
        self._pool = pool
        self._timeout_seconds = timeout_seconds
        self._cache_seconds = cache_seconds
        self._scopes: dict[ScopeName, KnownScope] = {}

    async def find_fitting(self, question: Question) -> list[Found]:
        """The items that fit, best first. Raises StoreUnavailable."""
        with outages_as_store_unavailable():
            async with asyncio.timeout(self._timeout_seconds):
                scope = await self._find_scope(question.scope)
                if scope is None:
                    return []
                bars = tighten(question.bars, question.background, scope.size)
                values = statement_values(replace(question, bars=bars), scope.id)
                statement = RECALL
                if question.tags:
                    statement, values = tagged(RECALL, len(values) + 1), (*values, question.tags)
                rows = cast("list[dict[str, Any]]", await self._pool.fetch(statement, *values))
        found = [Found(**row) for row in rows]
        return [replace(item, similarity=None) for item in found] if question.is_blind else found

    async def find_newest(self, name: ScopeName, tags: Sequence[str], limit: int) -> list[Found]:
        """The newest items of a scope, with any of the tags where there are some. Raises StoreUnavailable."""
        with outages_as_store_unavailable():
            async with asyncio.timeout(self._timeout_seconds):
                scope = await self._find_scope(name)
                if scope is None:
                    return []
                values = (name.tenant, scope.id, tags, limit)
                rows = cast("list[dict[str, Any]]", await self._pool.fetch(NEWEST, *values))
        return [Found(**row) for row in rows]

    async def find_scope(self, name: ScopeName) -> KnownScope | None:
        """Raises StoreUnavailable."""
        with outages_as_store_unavailable():
            async with asyncio.timeout(self._timeout_seconds):
                return await self._find_scope(name)

    async def _find_scope(self, name: ScopeName) -> KnownScope | None:
        """Remembered, so that nearly every recall is one statement, whose plan suits the number."""
        known = self._scopes.get(name)
        if known is None or time.monotonic() - known.seen_at >= self._cache_seconds:
            known = await self._look_for_scope(name)
        return known

    async def _look_for_scope(self, name: ScopeName) -> KnownScope | None:
        row = cast("dict[str, Any] | None", await self._pool.fetchrow(FIND_SCOPE, name.tenant, name.kind, name.key))
        if row is None:
            return None
        if len(self._scopes) >= SCOPES_REMEMBERED_MAX:
            self._scopes.clear()
        owner = Owner(team=row["team_id"], organization=row["org_id"])
        self._scopes[name] = KnownScope(row["id"], owner, row["items_active"], time.monotonic())
        return self._scopes[name]

    async def find_lesson(self, tenant: str, repository: str | None, lesson_id: UUID) -> Stored | None:
        """A lesson with its sources and what it replaced, all of one repository."""
        query = (
            sa.select(memory_items, scopes.c.key.label("repository"))
            .join(scopes, scopes.c.id == memory_items.c.scope_id)
            .where(memory_items.c.tenant == tenant, memory_items.c.id == lesson_id, scopes.c.kind == "swe-lessons")
        )
        if repository is not None:
            query = query.where(scopes.c.key == repository)
        async with self._in_time() as connection:
            row = (await connection.execute(query)).one_or_none()
            if row is None:
                return None
            merged_from, replaced, variants = await self._find_related(connection, row)
        return Stored(
            id=row.id,
            repository=row.repository,
            summary=row.summary,
            rationale=row.rationale,
            failure_type=row.failure_type,
            confidence=row.confidence,
            created_at=row.created_at,
            run_id=row.run_id,
            agent_key=row.agent_key,
            metadata=row.metadata,
            is_superseded=row.superseded_at is not None,
            is_consolidated=row.consolidated_at is not None,
            is_held=row.held_at is not None,
            merged_from=merged_from,
            replaced=replaced,
            variants=variants,
        )

    async def _find_related(self, connection: AsyncConnection, lesson: sa.Row[Any]) -> list[list[tuple[UUID, str]]]:
        """What it was merged from, what it replaced, and its variants."""
        same_scope = sa.select(memory_items.c.id, memory_items.c.summary).where(
            memory_items.c.tenant == lesson.tenant, memory_items.c.scope_id == lesson.scope_id
        )
        source_ids = sa.select(memory_sources.c.source_id).where(memory_sources.c.merged_id == lesson.id)
        related: list[list[tuple[UUID, str]]] = []
        is_variant = sa.and_(
            memory_items.c.variant_group == lesson.variant_group,
            memory_items.c.id != lesson.id,
            memory_items.c.superseded_at.is_(None),
            memory_items.c.consolidated_at.is_(None),
            memory_items.c.held_at.is_(None),
        )
        conditions = (memory_items.c.id.in_(source_ids), memory_items.c.superseded_by_id == lesson.id, is_variant)
        for condition in conditions:
            rows = await connection.execute(same_scope.where(condition).order_by(memory_items.c.id))
            related.append([(row.id, row.summary) for row in rows])
        return related

    async def insert_records(self, records: Sequence[RecallRecord]) -> None:
        """Logs recalls and queues their facts. Raises StoreUnavailable."""
        rows = [
            {
                "tenant": record.scope.tenant,
                "scope_kind": record.scope.kind,
                "scope_key": record.scope.key,
                "run_id": record.run_id,
                "agent": record.agent,
                "item_ids": list(record.item_ids),
                "dropped_ids": list(record.dropped_ids),
            }
            for record in records
        ]
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                await connection.execute(sa.insert(recall_log), rows)
                await insert_events(connection, [event for record in records for event in record.events])

    @asynccontextmanager
    async def _in_time(self) -> AsyncGenerator[AsyncConnection]:
        with outages_as_store_unavailable():
            async with asyncio.timeout(self._timeout_seconds), self._engine.connect() as connection:
                yield connection
