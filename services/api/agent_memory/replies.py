"""What is answered: a field that has no value is left out."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from services.api.context import Context
from services.api.rules import Record, Session


class Reply(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True)


class Violations(Reply):
    """A request that breaks rules, or that names no caller."""

    status_code: int
    message: list[str] | str
    error: str


class Failure(Reply):
    status: Literal["error"] = "error"
    message: str
    operation: str | None = None
    patterns: list[str] | None = None


class Success(Reply):
    status: Literal["success"] = "success"


class Provider(Reply):
    id: str
    name: str


class Availability(Success):
    available: bool
    active_provider: Provider | None
    message: str | None = None


class SessionBody(Reply):
    id: str
    started_at: datetime
    ended_at: datetime | None = None
    metadata: dict[str, Any]


class RecordBody(Reply):
    id: str
    content: str
    tags: list[str]
    metadata: dict[str, Any]
    created_at: datetime
    session_id: str | None = None
    project_id: str
    score: float | None = Field(default=None, ge=0, le=1)
    held: bool | None = None
    """True: stored, and found only once an administrator has released it."""


class ContextBody(Reply):
    content: str
    approx_tokens: int
    references: list[RecordBody]


class Opened(Success):
    session: SessionBody


class Listed(Success):
    sessions: list[SessionBody]


class Saved(Success):
    record: RecordBody


class Found(Success):
    results: list[RecordBody]


class Built(Success):
    context: ContextBody


def render_session(session: Session) -> SessionBody:
    return SessionBody(
        id=session.id, started_at=session.started_at, ended_at=session.ended_at, metadata=dict(session.metadata)
    )


def render_record(record: Record) -> RecordBody:
    return RecordBody(
        id=record.id,
        content=record.content,
        tags=list(record.tags),
        metadata=dict(record.metadata),
        created_at=record.created_at,
        session_id=record.session_id,
        project_id=record.project,
        score=record.score,
        held=record.held or None,
    )


def render_context(context: Context) -> ContextBody:
    return ContextBody(
        content=context.content,
        approx_tokens=context.tokens,
        references=[render_record(record) for record in context.references],
    )
