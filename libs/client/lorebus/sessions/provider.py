"""What a memory can do: the port that each backend fills (spec 1.2).

`Memory` is what sessions, runs and pipelines call; a bound facade is one too, so that they need not know who answers.
Forgetting, listing and exporting are optional: a provider has them or not, and a facade says so by
`OperationNotSupported`; exporting it does not offer.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

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


class Memory(Protocol):
    """Each call may raise."""

    async def open_session(self, *, project_id: str | None = None, metadata: Metadata | None = None) -> Session: ...

    async def close_session(self, session_id: str, *, project_id: str | None = None) -> None:
        """Closing a closed one changes nothing."""
        ...

    async def save(self, observation: Observation) -> Record:
        """Works without a session."""
        ...

    async def search(self, search: Search) -> SearchResponse: ...

    async def build_context(self, request: ContextRequest) -> Context: ...


class MemoryProvider(Memory, Protocol):
    """A memory with a name, reached by settings of its own."""

    @property
    def name(self) -> str:
        """As people read it."""
        ...

    async def check_health(self) -> Health:
        """Never raises for a backend that is down: it says so."""
        ...


@runtime_checkable
class ForgetsEntries(Protocol):
    async def forget(self, entry_id: str, *, project_id: str | None = None) -> None: ...


@runtime_checkable
class ListsSessions(Protocol):
    async def list_sessions(self, *, project_id: str | None = None, limit: int | None = None) -> Sequence[Session]:
        """The newest first."""
        ...


@runtime_checkable
class ExportsAll(Protocol):
    async def export_all(self) -> JsonValue:
        """All that the backend holds for this caller, in a form of the backend's own. Untrusted."""
        ...
