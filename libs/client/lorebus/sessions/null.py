"""The provider that keeps nothing: for a host that wants its memory off without another path through its code."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import uuid4

from pydantic import JsonValue

from lorebus.sessions.records import (
    Context,
    ContextRequest,
    Health,
    Metadata,
    Observation,
    Record,
    Search,
    SearchResponse,
    Session,
)
from lorebus.sessions.settings import Settings


class NullProvider:
    """Takes everything and finds nothing."""

    name: str = "null"

    def __init__(self, settings: Settings | None = None) -> None:
        """Has no settings, and takes those of any provider in whose place it stands."""

    async def check_health(self) -> Health:
        return Health(is_connected=True)

    async def open_session(self, *, project_id: str | None = None, metadata: Metadata | None = None) -> Session:
        return Session(str(uuid4()), datetime.now(UTC), metadata=metadata)

    async def close_session(self, session_id: str, *, project_id: str | None = None) -> None:
        """Nothing was open."""

    async def save(self, observation: Observation) -> Record:
        return Record(
            str(uuid4()),
            observation.content,
            datetime.now(UTC),
            observation.tags,
            observation.metadata,
            observation.session_id,
            observation.project_id,
        )

    async def search(self, search: Search) -> SearchResponse:
        return SearchResponse()

    async def build_context(self, request: ContextRequest) -> Context:
        return Context()

    async def forget(self, entry_id: str, *, project_id: str | None = None) -> None:
        """Nothing was kept."""

    async def list_sessions(self, *, project_id: str | None = None, limit: int | None = None) -> Sequence[Session]:
        return ()

    async def export_all(self) -> JsonValue:
        return []
