"""The service's story: hosts open sessions, save entries in them, and get back what fits, over HTTP.

Both surfaces speak to this; what they accept and how they word an answer is theirs. What has to last goes over the
bus to the service that owns it; sessions are this one's own.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

import structlog
from lorebus.contracts.envelope import build_message
from lorebus.contracts.memory import WriteEntry
from lorebus.errors import LorebusError

from libs.common.bus.relay import Relay
from libs.common.errors import StoreUnavailable
from services.api.backend import Backend, BackendUnavailable
from services.api.context import Context, build_context
from services.api.records import Records
from services.api.rules import Record, Session
from services.api.store import ApiStore

_log = structlog.get_logger("api")

LISTED = "*"
CANDIDATES_MAX = 20
"""Entries that a context is made from."""
OUTAGES = frozenset({"gate", "embedder", "store", "in_work", "bus", "deadline"})


class EntryRefused(LorebusError):
    """The memory does not take this text; saving it again changes nothing."""

    def __init__(self, reason: str, message: str, patterns: Sequence[str]) -> None:
        super().__init__(message)
        self.reason = reason
        self.patterns = list(patterns)


@dataclass(frozen=True, slots=True)
class NewEntry:
    project: str
    content: str
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] | None = None
    session_id: str | None = None
    event_id: str | None = None
    """The caller's own: saved again under it, the entry counts once."""


@dataclass(frozen=True, slots=True)
class Question:
    project: str
    query: str | None = None
    limit: int = 10
    tags: Sequence[str] = ()
    session_id: str | None = None


class MemoryService:
    """save → memory.save → id · search, context → recall.request → texts by id · forget → memory.delete"""

    def __init__(self, store: ApiStore, records: Records, backend: Backend, relay: Relay) -> None:
        self._store = store
        self._records = records
        self._backend = backend
        self._relay = relay

    async def is_available(self) -> bool:
        try:
            await self._store.ping()
        except StoreUnavailable:
            return False
        return self._backend.is_up

    async def open_session(
        self, tenant: str, project: str, metadata: Mapping[str, Any], session_id: str | None = None
    ) -> Session:
        session = await self._store.open_session(tenant, session_id or f"ses_{uuid4().hex}", project, metadata)
        self._relay.nudge()
        return session

    async def close_session(self, tenant: str, session_id: str) -> None:
        """Closing a closed or an unknown one changes nothing."""
        if await self._store.close_session(tenant, session_id):
            self._relay.nudge()

    async def list_sessions(self, tenant: str, project: str | None, limit: int) -> list[Session]:
        """The newest first; None: of all projects."""
        return await self._store.list_sessions(tenant, project, limit)

    async def save(self, tenant: str, new: NewEntry) -> Record:
        """The entry as stored. Raises InvalidMessage, EntryRefused, BackendUnavailable."""
        reply = await self._backend.save(tenant, _build_entry(new))
        if reply.error in OUTAGES:
            raise BackendUnavailable(f"the entry could not be stored now ({reply.error})")
        if reply.id is None:
            raise EntryRefused(str(reply.error), _explain(reply.error), reply.patterns)
        found = await self._records.find(tenant, [UUID(reply.id)])
        if reply.id not in found:
            raise EntryRefused("forgotten", _explain("forgotten"), [])
        return found[reply.id]

    async def search(self, tenant: str, question: Question) -> list[Record]:
        """The best first, whatever their similarity; `*` or nothing lists the newest. Raises BackendUnavailable."""
        return await self._find(tenant, question, similarity_min=0.0)

    async def build_context(self, tenant: str, question: Question, tokens_max: int) -> Context:
        """Only what fits the question, within the budget; without a question the newest. Raises BackendUnavailable."""
        records = await self._find(tenant, replace(question, limit=CANDIDATES_MAX))
        return build_context(records, tokens_max)

    async def forget(self, tenant: str, ids: Sequence[UUID], actor: str, project: str | None = None) -> int:
        """How many entries there were: of any project, or of this one alone. Raises BackendUnavailable."""
        found = await self._records.find(tenant, ids)
        chosen = [UUID(id_) for id_, record in found.items() if project in (None, record.project)]
        if chosen:
            await self._backend.delete(tenant, chosen, actor)
            _log.info("api.entries_forgotten", count=len(chosen), beyond_project=project is None)
        return len(chosen)

    async def forget_session(self, tenant: str, session_id: str, actor: str, project: str | None = None) -> int:
        """A session with all its entries. Returns how many those were."""
        count = await self.forget(tenant, await self._store.find_session_entries(tenant, session_id), actor, project)
        session = await self._store.find_session(tenant, session_id)
        if session and project in (None, session.project):
            await self.close_session(tenant, session_id)
            await self._store.delete_session(tenant, session_id)
        return count

    async def _find(self, tenant: str, question: Question, *, similarity_min: float | None = None) -> list[Record]:
        asking = self._backend.recall(
            tenant,
            {
                "repository": None,
                "channel": None,
                "project": question.project,
                "query": (question.query or "").strip() or LISTED,
                "limit": question.limit,
                "tags": list(question.tags),
                "similarity_min": similarity_min,
            },
        )
        reply, _ = await asyncio.gather(asking, self._note_use(tenant, question.session_id))
        scores = {item.id: min(1.0, max(0.0, item.similarity or 0.0)) for item in reply.items}
        records = await self._records.find(tenant, [UUID(id_) for id_ in scores])
        return [replace(records[id_], score=score) for id_, score in scores.items() if id_ in records]

    async def _note_use(self, tenant: str, session_id: str | None) -> None:
        if session_id is not None:
            await self._records.use_session(tenant, session_id)


def _build_entry(new: NewEntry) -> WriteEntry:
    return build_message(
        WriteEntry,
        {
            "event_id": new.event_id or str(uuid4()),
            "project": new.project,
            "session_id": new.session_id,
            "content": new.content,
            "tags": list(new.tags),
            "metadata": dict(new.metadata or {}),
        },
    )


def _explain(error: str | None) -> str:
    match error:
        case "matched":
            return "the memory gate found a pattern of prompt injection"
        case "incomplete":
            return "the memory gate could not scan the whole text"
        case "origin_quarantined":
            return "too many entries of this project were refused; it is left alone for a while"
        case "conflict":
            return "another entry was saved under this idempotency key"
        case "forgotten":
            return "the entry was forgotten"
        case _:
            return "the entry does not fit its contract"
