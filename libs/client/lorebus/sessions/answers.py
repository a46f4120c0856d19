"""What backends answer, in the spellings that they use (spec 5). Pure.

What an answer leaves out is filled from the request; only an id cannot be: without it nothing can be named again.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from pydantic import JsonValue

from lorebus.sessions.errors import AnswerUnreadable
from lorebus.sessions.records import Context, Metadata, Observation, Record, SearchResponse, Session

SESSION_IDS = ("id", "sessionId", "session_id")
RECORD_IDS = ("id", "observationId", "observation_id", "memoryId", "memory_id")

Fields = Mapping[str, JsonValue]


def is_healthy(answer: JsonValue) -> bool:
    fields = _fields(answer)
    return fields.get("ok") is True or str(fields.get("status", "")).lower() == "ok"


def read_session(answer: JsonValue, now: datetime, metadata: Metadata | None = None) -> Session:
    """Raises AnswerUnreadable without an id."""
    fields = _fields(answer)
    return Session(
        id=_get_id(fields, SESSION_IDS, "a session"),
        started_at=_find_time(fields, "startedAt", "started_at") or now,
        ended_at=_find_time(fields, "endedAt", "ended_at"),
        metadata=_find_metadata(fields) or metadata,
        context=fields.get("context", fields.get("recall")),
    )


def read_sessions(answer: JsonValue, now: datetime) -> Sequence[Session]:
    """Raises AnswerUnreadable for one without an id."""
    return [read_session(one, now) for one in _find_list(_fields(answer), "sessions")]


def read_record(answer: JsonValue, now: datetime, asked: Observation | None = None) -> Record:
    """Raises AnswerUnreadable without an id."""
    fields = _fields(answer)
    asked = asked or Observation("")
    tags = fields.get("tags")
    return Record(
        id=_get_id(fields, RECORD_IDS, "a record"),
        content=_find_text(fields, "content", "text") or asked.content,
        created_at=_find_time(fields, "createdAt", "created_at") or now,
        tags=[str(tag) for tag in tags] if isinstance(tags, list) else asked.tags,
        metadata=_find_metadata(fields) or asked.metadata,
        session_id=_find_text(fields, "sessionId", "session_id") or asked.session_id,
        project_id=_find_text(fields, "project", "projectId", "project_id") or asked.project_id,
        score=_find_number(fields, "score", "similarity"),
    )


def read_search(answer: JsonValue, now: datetime) -> SearchResponse:
    """Raises AnswerUnreadable when one result has no id."""
    fields = _fields(answer)
    found = _find_list(fields, "results", "matches", "hits")
    return SearchResponse([read_record(one, now) for one in found], _find_text(fields, "summary", "digest"))


def read_context(answer: JsonValue, now: datetime) -> Context:
    """Raises AnswerUnreadable when one reference has no id."""
    fields = _fields(answer)
    tokens = _find_number(fields, "approxTokens", "approx_tokens")
    return Context(
        content=_find_text(fields, "content", "context", "text") or "",
        tokens_approximate=None if tokens is None else round(tokens),
        references=[read_record(one, now) for one in _find_list(fields, "references")],
    )


def find_next(page: JsonValue) -> str | None:
    """Where the page behind this one begins; None behind the last."""
    return _find_text(_fields(page), "next")


def _fields(answer: JsonValue) -> Fields:
    return answer if isinstance(answer, dict) else {}


def _get_id(fields: Fields, names: Sequence[str], what: str) -> str:
    found = _find_text(fields, *names)
    if found is None:
        raise AnswerUnreadable(f"the memory backend gave {what} without an id")
    return found


def _find_text(fields: Fields, *names: str) -> str | None:
    """The first that is a text, and not an empty one."""
    values = (fields.get(name) for name in names)
    return next((value for value in values if isinstance(value, str) and value), None)


def _find_number(fields: Fields, *names: str) -> float | None:
    values = (fields.get(name) for name in names)
    return next((float(one) for one in values if isinstance(one, int | float) and not isinstance(one, bool)), None)


def _find_list(fields: Fields, *names: str) -> list[JsonValue]:
    values = (fields.get(name) for name in names)
    return next((value for value in values if isinstance(value, list)), list[JsonValue]())


def _find_metadata(fields: Fields) -> Metadata | None:
    metadata = fields.get("metadata")
    return metadata if isinstance(metadata, dict) else None


def _find_time(fields: Fields, *names: str) -> datetime | None:
    text = _find_text(fields, *names)
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
