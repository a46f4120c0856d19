"""The one door to whichever provider answers for a caller (spec 1.3).

Its errors are typed for a host that tells people what went wrong: NoProvider and ProviderNotFound as they are, all
else as ProviderFailed with the operation and the provider. What must not fail goes through `MemorySession`.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from lorebus.sessions.errors import NoProvider, Operation, OperationNotSupported, ProviderFailed
from lorebus.sessions.provider import ForgetsEntries, ListsSessions, MemoryProvider
from lorebus.sessions.records import (
    Context,
    ContextRequest,
    Metadata,
    Observation,
    Record,
    Search,
    SearchResponse,
    Session,
)
from lorebus.sessions.registry import BUILT_IN, Caller, HostSettings, Registration, choose, resolve_settings

T = TypeVar("T")

ReadSettings = Callable[[Caller], Awaitable[HostSettings]]


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a caller has a memory, and whose."""

    is_available: bool
    provider_id: str | None = None
    provider_name: str | None = None
    message: str | None = None
    """What to do, where there is none."""


async def read_nothing(_caller: Caller) -> HostSettings:
    """For a host without settings: the first provider, by the environment."""
    return HostSettings()


class MemoryFacade:
    def __init__(
        self, registrations: Sequence[Registration] = BUILT_IN, read_settings: ReadSettings = read_nothing
    ) -> None:
        self._registrations = tuple(registrations)
        self._read_settings = read_settings

    @property
    def is_configured(self) -> bool:
        """Is any provider loaded, whoever enabled it? What a caller has, `check_availability` tells."""
        return bool(self._registrations)

    def bind(self, caller: Caller) -> "BoundMemory":
        """The memory of one caller, fixed beforehand: what steps, sessions and runs are given."""
        return BoundMemory(self, caller)

    async def check_availability(self, caller: Caller) -> Availability:
        """Raises ProviderNotFound for one asked for by name."""
        try:
            chosen = choose(self._registrations, await self._read_settings(caller), caller.provider)
        except NoProvider as error:
            return Availability(is_available=False, message=str(error))
        return Availability(True, chosen.id, chosen.name)

    async def open_session(
        self, caller: Caller, *, project_id: str | None = None, metadata: Metadata | None = None
    ) -> Session:
        return await self._call(
            caller, "openSession", lambda memory, _: memory.open_session(project_id=project_id, metadata=metadata)
        )

    async def close_session(self, caller: Caller, session_id: str, *, project_id: str | None = None) -> None:
        await self._call(
            caller, "closeSession", lambda memory, _: memory.close_session(session_id, project_id=project_id)
        )

    async def save(self, caller: Caller, observation: Observation) -> Record:
        return await self._call(caller, "saveMemory", lambda memory, _: memory.save(observation))

    async def search(self, caller: Caller, search: Search) -> SearchResponse:
        return await self._call(caller, "searchMemory", lambda memory, _: memory.search(search))

    async def build_context(self, caller: Caller, request: ContextRequest) -> Context:
        """With the id of the provider that gave it."""

        async def build(memory: MemoryProvider, provider: str) -> Context:
            return replace(await memory.build_context(request), provider=provider)

        return await self._call(caller, "buildContext", build)

    async def forget(self, caller: Caller, entry_id: str, *, project_id: str | None = None) -> None:
        """Raises OperationNotSupported where the provider cannot."""

        async def forget(memory: MemoryProvider, provider: str) -> None:
            if not isinstance(memory, ForgetsEntries):
                raise OperationNotSupported("deleteEntry", provider)
            await memory.forget(entry_id, project_id=project_id)

        await self._call(caller, "deleteEntry", forget)

    async def list_sessions(
        self, caller: Caller, *, project_id: str | None = None, limit: int | None = None
    ) -> Sequence[Session]:
        """Raises OperationNotSupported where the provider cannot."""

        async def list_sessions(memory: MemoryProvider, provider: str) -> Sequence[Session]:
            if not isinstance(memory, ListsSessions):
                raise OperationNotSupported("listSessions", provider)
            return await memory.list_sessions(project_id=project_id, limit=limit)

        return await self._call(caller, "listSessions", list_sessions)

    async def _call(
        self, caller: Caller, operation: Operation, work: Callable[[MemoryProvider, str], Awaitable[T]]
    ) -> T:
        host = await self._read_settings(caller)
        chosen = choose(self._registrations, host, caller.provider)
        try:
            return await work(chosen.build(resolve_settings(chosen, host)), chosen.id)
        except ProviderFailed:
            raise
        except Exception as error:
            raise ProviderFailed(operation, chosen.id, error) from error


class BoundMemory:
    """The facade with its caller fixed; a `Memory`, so sessions and pipelines take it."""

    def __init__(self, facade: MemoryFacade, caller: Caller) -> None:
        self._facade = facade
        self.caller = caller

    @property
    def is_configured(self) -> bool:
        return self._facade.is_configured

    async def open_session(self, *, project_id: str | None = None, metadata: Metadata | None = None) -> Session:
        return await self._facade.open_session(self.caller, project_id=project_id, metadata=metadata)

    async def close_session(self, session_id: str, *, project_id: str | None = None) -> None:
        await self._facade.close_session(self.caller, session_id, project_id=project_id)

    async def save(self, observation: Observation) -> Record:
        return await self._facade.save(self.caller, observation)

    async def search(self, search: Search) -> SearchResponse:
        return await self._facade.search(self.caller, search)

    async def build_context(self, request: ContextRequest) -> Context:
        return await self._facade.build_context(self.caller, request)

    async def forget(self, entry_id: str, *, project_id: str | None = None) -> None:
        await self._facade.forget(self.caller, entry_id, project_id=project_id)

    async def list_sessions(self, *, project_id: str | None = None, limit: int | None = None) -> Sequence[Session]:
        return await self._facade.list_sessions(self.caller, project_id=project_id, limit=limit)
