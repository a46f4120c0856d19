"""Entries: what an agent or its host wants remembered in a project, on the same way as a lesson.

An entry is nobody's evidence and replaces nothing. Its text is masked and otherwise kept as it came, and so are its
metadata, in which callers find their own again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

import sqlalchemy as sa
from lorebus.contracts.facts.writer import EntryWritten
from lorebus.contracts.memory import AnyWrite, WriteEntry, WriteMemory
from lorebus.contracts.subjects import MEMORY_WRITE
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.common.domain.masking import mask_json, mask_text
from libs.common.domain.memory import TIER_AGENT
from libs.common.schema import entries, sessions
from services.writer.rules import Draft, Source, draft_note, evidence_time, index_terms, source_of_note
from services.writer.wording.lesson import Lesson

AGENT_KEY = "entry"


@dataclass(frozen=True)
class EntrySource(Source):
    """The event that an entry is made from; `repository` is its project."""

    session_id: str | None = None
    tags: Sequence[str] = ()

    def about(self) -> dict[str, Any]:
        return {
            "tenant": self.tenant,
            "event_id": self.event_id,
            "project": self.repository,
            "session_id": self.session_id,
        }


@dataclass(frozen=True)
class EntryDraft(Draft):
    tags: Sequence[str] = ()

    def texts(self) -> dict[str, str]:
        tags = {"tags": "\n".join(self.tags)} if self.tags else {}
        return super().texts() | tags


def source_of_write(message: AnyWrite, tenant: str, published_at: datetime) -> Source:
    if isinstance(message, WriteEntry):
        return _source_of_entry(message, tenant, published_at)
    return source_of_note(cast("WriteMemory", message), tenant, published_at)


def draft_write(message: AnyWrite) -> Draft:
    if isinstance(message, WriteEntry):
        return _draft_entry(message)
    return draft_note(cast("WriteMemory", message))


def receipt_of_write(message: AnyWrite) -> dict[str, str | None]:
    """What the inbox shows of it; an entry belongs to no run and no repository."""
    if isinstance(message, WriteMemory):
        return {"run_id": message.run_id, "repository": message.repository}
    return {}


def build_written(source: EntrySource, item_id: UUID, *, is_held: bool) -> EntryWritten:
    return EntryWritten(**source.about(), id=str(item_id), held=is_held)


async def insert_entry(connection: AsyncConnection, source: EntrySource, item_id: UUID) -> None:
    """What the entry has beside its memory, in the transaction that makes it; its session was used just now."""
    row = {"item_id": item_id, "tenant": source.tenant, "session_id": source.session_id, "tags": list(source.tags)}
    await connection.execute(sa.insert(entries).values(row))
    if source.session_id is not None:
        used = sa.update(sessions).filter_by(tenant=source.tenant, id=source.session_id)
        await connection.execute(used.where(sessions.c.ended_at.is_(None)).values(used_at=sa.func.now()))


def _source_of_entry(entry: WriteEntry, tenant: str, published_at: datetime) -> EntrySource:
    return EntrySource(
        tenant=tenant,
        schema_name=MEMORY_WRITE,
        event_id=entry.event_id,
        repository=entry.project,
        evidence_at=evidence_time(entry.occurred_at, published_at),
        agent_key=AGENT_KEY,
        scope_kind="agent-memory",
        session_id=entry.session_id,
        tags=_mask_tags(entry.tags),
    )


def _draft_entry(entry: WriteEntry) -> EntryDraft:
    tags = _mask_tags(entry.tags)
    lesson = Lesson(
        summary=mask_text(entry.content),
        rationale="",
        failure_type=None,
        confidence=None,
        metadata=cast("dict[str, Any]", mask_json(cast("Any", entry.metadata))),
        index_text=" ".join(tags),
    )
    return EntryDraft(lesson, TIER_AGENT, index_terms(lesson), is_superseding=False, tags=tags)


def _mask_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Each once, in the order they came."""
    return tuple(dict.fromkeys(mask_text(tag) for tag in tags))
