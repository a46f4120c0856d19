"""A memory's row with all that hangs on it: made the same way from a run, a note, an entry, a turn or a fact.

Called in the transaction that ends the event, under the lock of the scope.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pgvector import HalfVector
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.common.active_items import activate
from libs.common.domain.memory import item_id_for, screened_text, text_hash
from libs.common.domain.supersession import Nearness, Rival, Supersession
from libs.common.embedding.serving import TextVectors
from libs.common.fingerprints import insert_fingerprints
from libs.common.rivals import Newcomer, confirm_items, decide, name_group, replace_items
from libs.common.schema import gate_verdicts, memory_items, scopes
from libs.common.tombstones import Work
from libs.common.vectors import MEMORY, insert_vectors
from services.writer.entries import EntrySource, insert_entry
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
    ordinal: int = 0
    """Among the memories that one event makes."""

    @property
    def id(self) -> UUID:
        return item_id_for(self.source.tenant, self.source.key, self.ordinal)


@dataclass(frozen=True)
class Kept:
    """A stored lesson."""

    id: UUID
    created_at: datetime
    replaced: Sequence[UUID] = ()
    is_held: bool = False


async def get_scope_id(connection: AsyncConnection, source: Source) -> int:
    """Of the place that the source names, which need not be known."""
    key = {"tenant": source.tenant, "kind": source.scope_kind, "key": source.repository}
    await connection.execute(insert(scopes).values(key).on_conflict_do_nothing())
    await _set_owner(connection, key, source)
    query = sa.select(scopes.c.id).filter_by(**key)
    return (await connection.execute(query)).scalar_one()


async def _set_owner(connection: AsyncConnection, key: dict[str, str], source: Source) -> None:
    """The repository belongs to the team and organization that its latest run named."""
    named = {"team_id": source.team_id, "org_id": source.org_id}
    owner = {column: name for column, name in named.items() if name is not None}
    if owner:
        is_new = sa.or_(*(scopes.c[column].is_distinct_from(name) for column, name in owner.items()))
        await connection.execute(sa.update(scopes).filter_by(**key).where(is_new).values(owner))


async def store_item(connection: AsyncConnection, scope_id: int, new: NewLesson) -> tuple[datetime, Supersession]:
    """Inserts it, supersedes what it replaces unless it is held; when it was made, and what that did to others."""
    decision = await _decide(connection, scope_id, new)
    created_at = await _insert_item(connection, scope_id, new, decision)
    await replace_items(connection, scope_id, decision.replaced, by=new.id)
    await confirm_items(connection, decision.confirmed)
    await name_group(connection, decision)
    return created_at, decision


async def _decide(connection: AsyncConnection, scope_id: int, new: NewLesson) -> Supersession:
    if new.is_held:
        return Supersession()
    embedding = HalfVector(new.vectors.embedding)
    newcomer = Newcomer(scope_id, _rival(new), new.draft.lesson.summary, new.vectors.model_id, embedding)
    return await decide(connection, newcomer, new.nearness)


async def _insert_item(connection: AsyncConnection, scope_id: int, new: NewLesson, decision: Supersession) -> datetime:
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


def work_of(new: NewLesson) -> Work:
    """What may have been forgotten meanwhile."""
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
        "ordinal": new.ordinal,
        "evidence_at": source.evidence_at,
    }
