"""The routes of the REST surface. What fails behind them is an ordinary 400 that names the operation."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Security
from fastapi.security import HTTPBearer
from lorebus.errors import InvalidMessage

from libs.common.errors import StoreUnavailable
from services.api.agent_memory.access import Access
from services.api.agent_memory.bodies import (
    LIMIT_DEFAULT,
    TOKENS_DEFAULT,
    BuildContext,
    OpenSession,
    Place,
    Save,
    Search,
    SessionsPlace,
)
from services.api.agent_memory.replies import (
    Availability,
    Built,
    Failure,
    Found,
    Listed,
    Opened,
    Provider,
    Saved,
    Success,
    Violations,
    render_context,
    render_record,
    render_session,
)
from services.api.asking import AskedBy, IdempotencyKey, find_event_id
from services.api.backend import BackendUnavailable
from services.api.errors import Refused
from services.api.names import Id
from services.api.rules import stamp
from services.api.service import EntryRefused, MemoryService, NewEntry, Question
from services.api.surfaces import AGENT_MEMORY

InPath = Annotated[Id, Path()]
AtPlace = Annotated[Place, Query()]
LOREBUS = Provider(id="lorebus", name="Lorebus")
REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Violations | Failure},
    401: {"model": Violations},
    **{status: {"model": Failure} for status in (403, 404, 408, 413, 429, 500, 503)},
}

BEARER = Security(HTTPBearer(scheme_name="token", description="A token of the host (JWT).", auto_error=False))
"""For the description: `edge.admission` has decided by then."""


def build_router(memory: MemoryService, access: Access) -> APIRouter:
    router = APIRouter(prefix=AGENT_MEMORY, tags=["agent-memory"], responses=REFUSALS, dependencies=[BEARER])
    _add_availability(router, memory)
    _add_sessions(router, memory, access)
    _add_entries(router, memory, access)
    _add_forgetting(router, memory, access)
    return router


def _add_availability(router: APIRouter, memory: MemoryService) -> None:
    @router.get("/check-availability", response_model_exclude_unset=True)
    async def check_availability(_caller: AskedBy) -> Availability:
        """Whether there is a memory to speak to."""
        if await memory.is_available():
            return Availability(status="success", available=True, active_provider=LOREBUS)
        message = "the memory's database or its bus does not answer"
        return Availability(status="success", available=False, active_provider=None, message=message)


def _add_sessions(router: APIRouter, memory: MemoryService, access: Access) -> None:
    @router.post("/sessions", status_code=201, response_model_exclude_none=True)
    async def open_session(caller: AskedBy, body: OpenSession | None = None) -> Opened:
        """Opens a session that is the caller's, whatever its metadata say."""
        body = body or OpenSession()
        async with operation("openSession"):
            project = await access.find_project(caller, body)
            session = await memory.open_session(caller.tenant, project, stamp(body.metadata or {}, caller))
        return Opened(session=render_session(session))

    @router.post("/sessions/{session_id}/close", response_model_exclude_none=True)
    async def close_session(session_id: InPath, place: AtPlace, caller: AskedBy) -> Success:
        """Closes a session of the caller's; closing a closed one changes nothing."""
        _require(session_id, "sessionId")
        async with operation("closeSession"):
            await access.find_project(caller, place, to_edit=True)
            await access.check_session(caller, session_id)
            await memory.close_session(caller.tenant, session_id)
        return Success()

    @router.get("/sessions", response_model_exclude_none=True)
    async def list_sessions(place: Annotated[SessionsPlace, Query()], caller: AskedBy) -> Listed:
        """The newest sessions of a project."""
        async with operation("listSessions"):
            project = await access.find_project(caller, place)
            found = await memory.list_sessions(caller.tenant, project, int(place.limit or LIMIT_DEFAULT))
        return Listed(sessions=[render_session(session) for session in found])


def _add_entries(router: APIRouter, memory: MemoryService, access: Access) -> None:
    @router.post("/save", status_code=201, response_model_exclude_none=True)
    async def save(body: Save, caller: AskedBy, idempotency_key: IdempotencyKey = None) -> Saved:
        """Saves an entry that is the caller's, and answers once it is stored."""
        async with operation("saveMemory"):
            new = NewEntry(
                project=await access.find_project(caller, body),
                content=body.content,
                tags=[tag for tag in body.tags or () if tag],
                metadata=stamp(body.metadata or {}, caller),
                session_id=body.session_id or None,
                event_id=find_event_id(caller, idempotency_key),
            )
            return Saved(record=render_record(await memory.save(caller.tenant, new)))

    @router.post("/search", response_model_exclude_none=True)
    async def search(body: Search, caller: AskedBy) -> Found:
        """The entries that fit best; the query `*`, or an empty one, lists the newest."""
        async with operation("searchMemory"):
            question = Question(
                project=await access.find_project(caller, body),
                query=body.query,
                limit=int(body.limit or LIMIT_DEFAULT),
                tags=body.tags or (),
                session_id=body.session_id or None,
            )
            found = await memory.search(caller.tenant, question)
        return Found(results=[render_record(record) for record in found])

    @router.post("/context", response_model_exclude_none=True)
    async def context(caller: AskedBy, body: BuildContext | None = None) -> Built:
        """What fits the query within the budget; without a query the newest."""
        body = body or BuildContext()
        async with operation("buildContext"):
            project = await access.find_project(caller, body)
            question = Question(project, body.query, session_id=body.session_id or None)
            built = await memory.build_context(caller.tenant, question, int(body.tokens_max or TOKENS_DEFAULT))
        return Built(context=render_context(built))


def _add_forgetting(router: APIRouter, memory: MemoryService, access: Access) -> None:
    @router.delete("/entries/{entry_id}", response_model_exclude_none=True)
    async def delete_entry(entry_id: InPath, place: AtPlace, caller: AskedBy) -> Success:
        """Forgets an entry of the caller's."""
        _require(entry_id, "entryId")
        async with operation("deleteEntry"):
            await access.find_project(caller, place, to_edit=True)
            id_ = await access.check_entry(caller, entry_id)
            await memory.forget(caller.tenant, [id_], f"user:{caller.user_id}")
        return Success()


def _require(id_: str, name: str) -> None:
    if not id_.strip():
        raise Refused(400, [f"{name} should not be empty"])


@asynccontextmanager
async def operation(name: str) -> AsyncGenerator[None]:
    """What the memory cannot do now, or will not, is the caller's to log."""
    try:
        yield
    except (BackendUnavailable, StoreUnavailable, InvalidMessage) as failure:
        raise _failed(name, str(failure)) from failure
    except EntryRefused as refusal:
        raise _failed(name, str(refusal), patterns=refusal.patterns) from refusal


def _failed(name: str, message: str, **more: Any) -> Refused:
    return Refused(400, message, {"status": "error", "message": message, "operation": name, **more})
