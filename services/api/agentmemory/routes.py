"""The routes of the drop-in backend. No missing id is an error, since its clients read 404 as a wrong address."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Security
from fastapi.security import HTTPBearer
from lorebus.errors import InvalidMessage

from services.api.agentmemory.bodies import (
    BuildContext,
    Cursor,
    EndSession,
    Forget,
    Remember,
    SmartSearch,
    StartSession,
)
from services.api.agentmemory.replies import (
    ContextReply,
    Done,
    ExportPage,
    Forgotten,
    GateRefusal,
    Refusal,
    Remembered,
    SearchReply,
    SessionList,
    SessionStarted,
    render_context,
    render_export,
    render_found,
    render_remembered,
    render_session,
    render_started,
)
from services.api.asking import AskedBy, IdempotencyKey, find_event_id
from services.api.errors import Refused
from services.api.exporting import Exporting
from services.api.names import Name
from services.api.rules import project_of_session
from services.api.service import EntryRefused, MemoryService, NewEntry, Question
from services.api.surfaces import AGENTMEMORY

SESSIONS_DEFAULT = 20
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Refusal} for status in (400, 401, 408, 413, 429, 500, 503)
}

BEARER = Security(HTTPBearer(scheme_name="secret", description="The secret of `LOREBUS_API_SECRET`.", auto_error=False))
"""For the description: `edge.admission` has decided by then."""


def build_router(
    memory: MemoryService, exporting: Exporting, default_project: str, *, deletes_beyond_project: bool
) -> APIRouter:
    router = APIRouter(prefix=AGENTMEMORY, tags=["agentmemory"], responses=REFUSALS, dependencies=[BEARER])
    _add_sessions(router, memory, default_project)
    _add_entries(router, memory, default_project)
    _add_forgetting(router, memory, default_project, deletes_beyond_project)
    _add_export(router, exporting)
    return router


def _add_sessions(router: APIRouter, memory: MemoryService, default_project: str) -> None:
    @router.post("/session/start")
    async def start_session(body: StartSession, caller: AskedBy) -> SessionStarted:
        """Opens a session, or finds the one of this id."""
        metadata = body.metadata or {}
        project = project_of_session(body.project, metadata, default_project)
        return render_started(await memory.open_session(caller.tenant, project, metadata, body.session_id))

    @router.post("/session/end")
    async def end_session(body: EndSession, caller: AskedBy) -> Done:
        """Closes a session; a closed or an unknown one is no error."""
        await memory.close_session(caller.tenant, body.session_id)
        return Done()

    @router.get("/sessions")
    async def list_sessions(
        caller: AskedBy,
        limit: Annotated[float, Query(ge=1, le=100)] = SESSIONS_DEFAULT,
        project: Annotated[Name | None, Query()] = None,
        project_id: Annotated[Name | None, Query(alias="projectId")] = None,
    ) -> SessionList:
        """The newest sessions, of one project or of all."""
        found = await memory.list_sessions(caller.tenant, project or project_id or None, int(limit))
        return SessionList(sessions=[render_session(session) for session in found])


def _add_entries(router: APIRouter, memory: MemoryService, default_project: str) -> None:
    @router.post("/remember", status_code=201, responses={422: {"model": GateRefusal}})
    async def remember(body: Remember, caller: AskedBy, idempotency_key: IdempotencyKey = None) -> Remembered:
        """Saves an entry and answers once it is stored."""
        if not body.content.strip():
            raise Refused(400, "content must not be blank")
        new = NewEntry(
            project=body.project or default_project,
            content=body.content,
            tags=body.tags or (),
            metadata=body.metadata,
            session_id=body.session_id,
            event_id=find_event_id(caller, idempotency_key),
        )
        try:
            return render_remembered(await memory.save(caller.tenant, new))
        except EntryRefused as refusal:
            answer = {"error": str(refusal), "patterns": refusal.patterns}
            raise Refused(422, str(refusal), answer) from refusal
        except InvalidMessage as fault:
            raise Refused(400, str(fault)) from fault

    @router.post("/smart-search")
    async def search(body: SmartSearch, caller: AskedBy) -> SearchReply:
        """The entries that fit best; the query `*` lists the newest."""
        question = Question(
            body.project or default_project, body.query, int(body.limit), body.tags or (), body.session_id
        )
        found = await memory.search(caller.tenant, question)
        return SearchReply(results=[render_found(record) for record in found])

    @router.post("/context")
    async def context(body: BuildContext, caller: AskedBy) -> ContextReply:
        """What fits the query within the budget; without a query the newest."""
        question = Question(body.project or default_project, body.query, session_id=body.session_id)
        return render_context(await memory.build_context(caller.tenant, question, int(body.tokens_max)))


def _add_forgetting(
    router: APIRouter, memory: MemoryService, default_project: str, deletes_beyond_project: bool
) -> None:
    @router.post("/forget")
    async def forget(body: Forget, caller: AskedBy) -> Forgotten:
        """Forgets one entry, some of a session, or a session with all of its own."""
        project = None if deletes_beyond_project else body.project or default_project
        actor = f"agentmemory:{caller.user_id}"
        if body.session_id and not body.filter and not body.memory_id and body.observation_ids is None:
            return Forgotten(deleted=await memory.forget_session(caller.tenant, body.session_id, actor, project))
        named = [body.filter.id] if body.filter else [body.memory_id] if body.memory_id else body.observation_ids or []
        return Forgotten(deleted=await memory.forget(caller.tenant, _uuids(named), actor, project))


def _add_export(router: APIRouter, exporting: Exporting) -> None:
    @router.get("/export")
    async def export(caller: AskedBy, after: Annotated[Cursor, Query()] = "") -> ExportPage:
        """All entries and sessions of the caller's tenant, page by page: for keeping, as the gate screens none anew."""
        return render_export(await exporting.read_page(caller.tenant, after))


def _uuids(ids: list[str]) -> list[UUID]:
    """Another text names nothing here."""
    found: list[UUID] = []
    for id_ in ids:
        try:
            found.append(UUID(id_))
        except ValueError:
            continue
    return found
