"""The consolidator's statements: what could be merged, and the one transaction that merges it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa
from lorebus.contracts.consolidation import RequestConsolidation
from lorebus.contracts.facts.fact import MemoryEvent
from lorebus.contracts.subjects import CONSOLIDATION_REQUESTED, subject_for
from pgvector import HalfVector
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.active_items import activate, deactivate
from libs.common.database import lock_scope, outages_as_store_unavailable
from libs.common.domain.memory import item_id_for, screened_text, text_hash
from libs.common.embedding.serving import TextVectors, hold_serving
from libs.common.fingerprints import copy_fingerprints
from libs.common.inbox import Claim, Inbox, Outcome
from libs.common.language_model.answers import delete_answers
from libs.common.outbox import insert_events, insert_message
from libs.common.schema import (
    consolidation_schedules,
    embedding_models,
    gate_findings,
    gate_verdicts,
    memory_items,
    memory_sources,
    memory_vectors,
    scopes,
)
from libs.common.tombstones import Work, find_buried
from libs.common.vectors import MEMORY, insert_vectors
from services.consolidator.facts import build_facts
from services.consolidator.rules import (
    AGENT_KEYS,
    CANDIDATES_MAX,
    Job,
    Left,
    Merge,
    MergedRow,
    Scope,
    ScopeKind,
    Source,
    Tally,
    count,
)

ROWS_A_PART = 250
"""Some milliseconds of decoding."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An active memory that could be merged."""

    id: UUID
    origin_tier: int
    embedding: HalfVector


@dataclass(frozen=True, slots=True)
class Measure:
    """The model whose vectors are compared, and its background."""

    model_id: int
    background: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Ready:
    """A merge that the gate has cleared, with its rows and their vectors."""

    merge: Merge
    rows: Sequence[MergedRow]
    vectors: Sequence[TextVectors]


@dataclass(frozen=True, slots=True)
class Result:
    """All that a request came to before its transaction. `found`: clusters."""

    found: int
    ready: Sequence[Ready] = ()
    left: Sequence[Left] = ()
    pattern_set: str = ""
    model_id: int = 0
    idle_reason: str = "nothing_alike"
    """Why nothing was merged, where nothing was found."""


_SCOPE = [scopes.c[name] for name in ("id", "tenant", "kind", "key", "team_id", "org_id", "items_active")]


class ConsolidatorStore:
    def __init__(self, engine: AsyncEngine, inbox: Inbox) -> None:
        self._engine = engine
        self._inbox = inbox

    async def find_scope(self, tenant: str, kind: ScopeKind, key: str) -> Scope | None:
        found = await self._rows(sa.select(*_SCOPE).filter_by(tenant=tenant, kind=kind, key=key))
        return Scope(**found[0]) if found else None

    async def find_repositories(self, tenant: str) -> list[Scope]:
        """Those that were not taken out of the schedule."""
        schedules = consolidation_schedules.c
        query = sa.select(*_SCOPE).outerjoin(consolidation_schedules, schedules.scope_id == scopes.c.id)
        query = query.where(scopes.c.tenant == tenant, scopes.c.kind == "swe-lessons")
        query = query.where(sa.func.coalesce(schedules.is_enabled, True)).order_by(scopes.c.key)
        return [Scope(**row) for row in await self._rows(query)]

    async def find_measure(self) -> Measure | None:
        """Of the model that serves; None before the very first start."""
        models = embedding_models.c
        query = sa.select(models.id, models.dimensions, models.background).where(models.state == "serving")
        found = await self._rows(query)
        if not found:
            return None
        background = np.frombuffer(found[0]["background"], dtype=np.float32).reshape(-1, found[0]["dimensions"])
        return Measure(found[0]["id"], background)

    async def find_candidates(self, scope: Scope, model_id: int, age_days_max: int) -> list[Candidate]:
        """Active, embedded by this model, not too old, nothing that a later pattern set matches; the newest first."""
        vectors = memory_vectors.c
        query = sa.select(vectors.item_id.label("id"), vectors.origin_tier, vectors.embedding).where(
            vectors.scope_id == scope.id,
            vectors.model_id == model_id,
            vectors.active,
            ~sa.exists().where(gate_findings.c.item_id == vectors.item_id),
        )
        if age_days_max:
            oldest = sa.func.now() - sa.func.make_interval(0, 0, 0, age_days_max)
            query = query.where(vectors.created_at >= oldest)
        newest = query.order_by(vectors.created_at.desc(), vectors.item_id).limit(CANDIDATES_MAX)
        return await self._read_in_parts(newest)

    async def _read_in_parts(self, query: sa.Select[*tuple[Any, ...]]) -> list[Candidate]:
        """Thousands of vectors at once would hold up everything else on this event loop."""
        found: list[Candidate] = []
        with outages_as_store_unavailable():
            async with self._engine.connect() as connection:
                result = await connection.stream(query, execution_options={"yield_per": ROWS_A_PART})
                async for part in result.partitions():
                    found += [Candidate(*row) for row in part]
        return found

    async def find_sources(self, ids: Sequence[UUID]) -> dict[UUID, Source]:
        query = sa.select(*(memory_items.c[name] for name in Source.__dataclass_fields__))
        found = await self._rows(query.where(memory_items.c.id.in_(ids)))
        return {row["id"]: Source(**row) for row in found}

    async def _rows(self, query: sa.Select[*tuple[Any, ...]]) -> Sequence[Mapping[str, Any]]:
        with outages_as_store_unavailable():
            async with self._engine.connect() as connection:
                return [dict(row) for row in (await connection.execute(query)).mappings()]

    async def dispatch(self, claim: Claim, jobs: Sequence[RequestConsolidation], fact: MemoryEvent) -> None:
        """Ends a request for every repository: each has a request of its own now."""
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                await self._inbox.settle(connection, claim, Outcome("written"))
                await insert_events(connection, [fact])
                await insert_requests(connection, claim.receipt.tenant, jobs)

    async def commit(self, claim: Claim, job: Job, result: Result) -> Tally:
        """Puts merged memories in the place of their sources, as far as these are what they were; ends the event."""
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                await lock_scope(connection, job.scope.id)
                unchanged = await _lock_unchanged(connection, job.scope, result) if result.ready else {}
                kept = [ready for ready in result.ready if _is_unchanged(ready.merge, unchanged)]
                changed = [
                    Left(one.merge.source_ids, "changed")
                    for one in result.ready
                    if not _is_unchanged(one.merge, unchanged)
                ]
                created = await _replace_sources(connection, job, result, kept)
                left = [*result.left, *changed]
                tally = count(result.found, [ready.merge for ready in kept], left, created)
                await self._inbox.settle(connection, claim, _outcome(tally, result))
                await delete_answers(connection, job.scope.tenant, job.key)
                await insert_events(connection, build_facts(job, tally, left))
        return tally


async def insert_requests(connection: AsyncConnection, tenant: str, jobs: Sequence[RequestConsolidation]) -> None:
    for job in jobs:
        payload = job.model_dump(mode="json", by_alias=True, exclude_none=True)
        await insert_message(connection, subject_for(CONSOLIDATION_REQUESTED, tenant), payload)


async def _lock_unchanged(connection: AsyncConnection, scope: Scope, result: Result) -> dict[UUID, str]:
    """The text hashes of those sources that are still active, locked in the order of their ids."""
    await hold_serving(connection, result.model_id)
    items = memory_items.c
    ids = [id_ for one in result.ready for id_ in one.merge.source_ids]
    buried = {key for _, key in await find_buried(connection, Work(scope.tenant, items=ids))}
    query = sa.select(items.id, items.text_sha256).where(
        items.id.in_(ids),
        items.scope_id == scope.id,
        items.consolidated_at.is_(None),
        items.superseded_at.is_(None),
        items.held_at.is_(None),
    )
    rows = await connection.execute(query.order_by(items.id).with_for_update())
    return {row.id: row.text_sha256 for row in rows if str(row.id) not in buried}


def _is_unchanged(merge: Merge, unchanged: Mapping[UUID, str]) -> bool:
    return all(unchanged.get(source.id) == source.text_sha256 for source in merge.sources)


def _outcome(tally: Tally, result: Result) -> Outcome:
    if tally.created:
        return Outcome("written", item_ids=tally.created)
    return Outcome("skipped", "all_left" if result.found else result.idle_reason)


async def _replace_sources(
    connection: AsyncConnection, job: Job, result: Result, kept: Sequence[Ready]
) -> Sequence[UUID]:
    """The ids of the merged memories."""
    if not kept:
        return []
    sources = [id_ for ready in kept for id_ in ready.merge.source_ids]
    now = (await connection.execute(sa.select(sa.func.now()))).scalar_one()
    merged = sa.update(memory_items).where(memory_items.c.id.in_(sources)).values(consolidated_at=now)
    await connection.execute(merged)
    await deactivate(connection, job.scope.id, sources)
    created = await _insert(connection, job, result, kept, now=now)
    await activate(connection, job.scope.id, created)
    return created


async def _insert(
    connection: AsyncConnection, job: Job, result: Result, kept: Sequence[Ready], *, now: datetime
) -> list[UUID]:
    new = [
        (ready.merge, row, vectors) for ready in kept for row, vectors in zip(ready.rows, ready.vectors, strict=True)
    ]
    ids = [item_id_for(job.scope.tenant, job.key, ordinal) for ordinal in range(len(new))]
    verdicts = [_verdict(job, row, result.pattern_set) for _, row, _ in new]
    await connection.execute(insert(gate_verdicts).on_conflict_do_nothing(), verdicts)
    items = [
        {"id": id_, "ordinal": ordinal, "created_at": now, **_item(job, row), **verdict}
        for ordinal, (id_, (_, row, _), verdict) in enumerate(zip(ids, new, verdicts, strict=True))
    ]
    await connection.execute(sa.insert(memory_items), items)
    embedded = [
        (id_, model_id, vector)
        for id_, (_, _, found) in zip(ids, new, strict=True)
        for model_id, vector in {found.model_id: found.embedding, **found.further}.items()
    ]
    await insert_vectors(connection, MEMORY, embedded)
    for id_, (merge, _, _) in zip(ids, new, strict=True):
        await _insert_lineage(connection, job.scope, id_, merge.source_ids)
    return ids


async def _insert_lineage(
    connection: AsyncConnection, scope: Scope, merged_id: UUID, source_ids: Sequence[UUID]
) -> None:
    rows = [{"merged_id": merged_id, "source_id": source_id} for source_id in source_ids]
    await connection.execute(sa.insert(memory_sources), rows)
    await copy_fingerprints(connection, scope.id, merged_id, source_ids)


def _verdict(job: Job, row: MergedRow, pattern_set: str) -> dict[str, str]:
    sha256 = text_hash(screened_text(row.summary, row.rationale))
    return {"tenant": job.scope.tenant, "text_sha256": sha256, "pattern_set": pattern_set, "verdict": "clean"}


def _item(job: Job, row: MergedRow) -> dict[str, Any]:
    fields: dict[str, Any] = {name: getattr(row, name) for name in MergedRow.__dataclass_fields__}
    agent_key = AGENT_KEYS[job.scope.kind]
    return fields | {"scope_id": job.scope.id, "agent_key": agent_key, "source_event_id": job.key}
