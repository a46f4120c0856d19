"""What is answered: every name under which some version of the client looks for a value."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from services.api.context import Context
from services.api.exporting import Page
from services.api.rules import Record, Session


class Reply(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True)


class Refusal(BaseModel):
    error: str


class GateRefusal(Refusal):
    patterns: list[str] = Field(default_factory=list[str])
    """Labels, never the text."""


class HealthReply(BaseModel):
    status: Literal["ok", "unavailable"]
    ok: bool
    service: str = "lorebus"
    version: str


class SessionReply(Reply):
    id: str
    session_id: str
    project: str
    started_at: datetime
    ended_at: datetime | None = None
    status: Literal["active", "completed"]
    metadata: dict[str, Any]


class SessionStarted(SessionReply):
    context: str = ""
    session: SessionReply


class SessionList(Reply):
    sessions: list[SessionReply]


class Done(Reply):
    success: Literal[True] = True


class Forgotten(Done):
    deleted: int


class MemoryReply(Reply):
    id: str
    content: str
    tags: list[str]
    metadata: dict[str, Any]
    session_id: str | None = None
    project: str
    created_at: datetime
    held: bool = False
    """Stored, and found only once an administrator has released it."""


class Remembered(MemoryReply):
    success: Literal[True] = True
    memory: MemoryReply


class FoundMemory(MemoryReply):
    obs_id: str
    score: float


class SearchReply(Reply):
    results: list[FoundMemory]


class BlockReply(Reply):
    id: str
    content: str
    tokens: int


class ContextReply(Reply):
    content: str
    context: str
    approx_tokens: int
    tokens: int
    blocks: list[BlockReply]
    references: list[FoundMemory]


class ExportPage(Reply):
    memories: list[MemoryReply]
    sessions: list[SessionReply]
    next: str | None
    """What to ask for as `after`; null behind the last page."""


def render_session(session: Session) -> SessionReply:
    return SessionReply(
        id=session.id,
        session_id=session.id,
        project=session.project,
        started_at=session.started_at,
        ended_at=session.ended_at,
        status="completed" if session.ended_at else "active",
        metadata=dict(session.metadata),
    )


def render_started(session: Session) -> SessionStarted:
    reply = render_session(session)
    return SessionStarted(**reply.model_dump(by_alias=False), session=reply)


def render_remembered(record: Record) -> Remembered:
    reply = MemoryReply(**_fields_of(record))
    return Remembered(**reply.model_dump(by_alias=False), memory=reply)


def render_found(record: Record) -> FoundMemory:
    return FoundMemory(**_fields_of(record), obs_id=record.id, score=record.score or 0.0)


def render_context(context: Context) -> ContextReply:
    return ContextReply(
        content=context.content,
        context=context.content,
        approx_tokens=context.tokens,
        tokens=context.tokens,
        blocks=[BlockReply(id=block.id, content=block.content, tokens=block.tokens) for block in context.blocks],
        references=[render_found(record) for record in context.references],
    )


def _fields_of(record: Record) -> dict[str, Any]:
    return {
        "id": record.id,
        "content": record.content,
        "tags": list(record.tags),
        "metadata": dict(record.metadata),
        "session_id": record.session_id,
        "project": record.project,
        "created_at": record.created_at,
        "held": record.held,
    }


def render_export(page: Page) -> ExportPage:
    memories = [MemoryReply(**_fields_of(record)) for record in page.records]
    return ExportPage(memories=memories, sessions=[render_session(one) for one in page.sessions], next=page.next)
