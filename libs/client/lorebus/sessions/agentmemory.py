"""The provider for every backend that speaks the agentmemory format over HTTP, the service `api` among them."""

from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic import JsonValue

from lorebus.errors import InvalidMessage
from lorebus.sessions.answers import (
    find_next,
    is_healthy,
    read_context,
    read_record,
    read_search,
    read_session,
    read_sessions,
)
from lorebus.sessions.errors import BackendRefused, BackendUnavailable
from lorebus.sessions.exchange import Exchange, exchange_http
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
from lorebus.sessions.settings import Settings, read_settings
from lorebus.sessions.wire import AgentMemoryWire


class AgentMemoryProvider:
    """`AgentMemoryProvider({"baseUrl": "http://localhost:3111", "projectId": "shop"})`, see `settings`.

    A project is always sent: the call's own, else the one of the settings. Each call raises BackendUnavailable,
    BackendRefused or AnswerUnreadable.
    """

    name: str = "agentmemory"

    def __init__(self, settings: Settings | None = None, exchange: Exchange = exchange_http) -> None:
        """Raises ProviderSettingsInvalid."""
        self.settings = read_settings(settings or {})
        self._wire = AgentMemoryWire(self.settings, exchange)

    async def check_health(self) -> Health:
        try:
            answer = await self._wire.get("/health")
        except (BackendUnavailable, BackendRefused) as error:
            return Health(is_connected=False, message=str(error))
        return Health(is_connected=True) if is_healthy(answer) else Health(False, "the backend does not say it is ok")

    async def open_session(self, *, project_id: str | None = None, metadata: Metadata | None = None) -> Session:
        fields = {"project": self._project(project_id), "metadata": _copy(metadata)}
        return read_session(await self._wire.post("/session/start", fields), datetime.now(UTC), metadata)

    async def close_session(self, session_id: str, *, project_id: str | None = None) -> None:
        await self._wire.post("/session/end", {"project": self._project(project_id), "sessionId": session_id})

    async def save(self, observation: Observation) -> Record:
        project = self._project(observation.project_id)
        fields = {
            "project": project,
            "content": observation.content,
            "tags": list(observation.tags) or None,
            "metadata": _copy(observation.metadata),
            "sessionId": observation.session_id,
        }
        return read_record(await self._wire.post("/remember", fields), datetime.now(UTC), observation)

    async def search(self, search: Search) -> SearchResponse:
        fields = {
            "project": self._project(search.project_id),
            "query": search.query,
            "topK": search.limit,
            "tags": list(search.tags) or None,
            "sessionId": search.session_id,
        }
        return read_search(await self._wire.post("/smart-search", fields), datetime.now(UTC))

    async def build_context(self, request: ContextRequest) -> Context:
        fields = {
            "project": self._project(request.project_id),
            "query": request.query,
            "purpose": request.purpose,
            "sessionId": request.session_id,
            "tokenBudget": request.tokens_max,
        }
        return read_context(await self._wire.post("/context", fields), datetime.now(UTC))

    async def forget(self, entry_id: str, *, project_id: str | None = None) -> None:
        if not entry_id.strip():
            # A backend could read an empty filter as "everything".
            raise InvalidMessage("an entry without an id cannot be forgotten")
        await self._wire.post("/forget", {"project": self._project(project_id), "filter": {"id": entry_id}})

    async def list_sessions(self, *, project_id: str | None = None, limit: int | None = None) -> Sequence[Session]:
        query = {"limit": limit, "projectId": self._project(project_id)}
        return read_sessions(await self._wire.get("/sessions", query), datetime.now(UTC))

    async def export_all(self) -> JsonValue:
        """Page by page, as the backend gives them; one without pages gives everything at once."""
        pages: list[JsonValue] = []
        after: str | None = ""
        while after is not None:
            page = await self._wire.get("/export", {"after": after or None})
            pages.append(page)
            after = find_next(page)
        return pages

    def _project(self, project_id: str | None) -> str:
        return project_id or self.settings.project


def _copy(metadata: Metadata | None) -> dict[str, JsonValue] | None:
    return None if metadata is None else dict(metadata)
