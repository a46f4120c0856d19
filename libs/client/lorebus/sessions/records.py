"""What goes to a memory and comes back from it (spec 1.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import JsonValue

Metadata = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Observation:
    """A text to remember, in a project and perhaps in a session."""

    content: str
    tags: Sequence[str] = ()
    metadata: Metadata | None = None
    session_id: str | None = None
    project_id: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A remembered text. Its content is untrusted."""

    id: str
    content: str
    created_at: datetime
    tags: Sequence[str] = ()
    metadata: Metadata | None = None
    session_id: str | None = None
    project_id: str | None = None
    score: float | None = None
    """0 to 1, from a search only."""


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    started_at: datetime
    ended_at: datetime | None = None
    metadata: Metadata | None = None
    context: JsonValue = None
    """What some backends give on opening. Untrusted."""


@dataclass(frozen=True, slots=True)
class Search:
    query: str
    limit: int | None = None
    """The backend's own where there is none, usually 10."""
    tags: Sequence[str] = ()
    """Any of them."""
    session_id: str | None = None
    project_id: str | None = None


@dataclass(frozen=True, slots=True)
class SearchResponse:
    results: Sequence[Record] = ()
    summary: str | None = None


@dataclass(frozen=True, slots=True)
class ContextRequest:
    query: str | None = None
    purpose: str | None = None
    """May bias what is chosen; a backend may ignore it."""
    session_id: str | None = None
    project_id: str | None = None
    tokens_max: int | None = None


@dataclass(frozen=True, slots=True)
class Context:
    content: str = ""
    """Untrusted: into a prompt only between the fences of `fence.render_block`."""
    tokens_approximate: int | None = None
    references: Sequence[Record] = ()
    provider: str | None = None
    """Who gave it, where a facade chose."""


@dataclass(frozen=True, slots=True)
class Health:
    is_connected: bool
    message: str = ""
    """Why not."""
