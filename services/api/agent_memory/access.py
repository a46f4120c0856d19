"""Who may: a caller's role in a work, and whose a session or an entry is."""

from uuid import UUID

from services.api.agent_memory.bodies import Place
from services.api.errors import Refused
from services.api.records import Records
from services.api.rules import Caller, Record, Session, judge_work, may_change
from services.api.store import ApiStore


class Access:
    def __init__(self, store: ApiStore, records: Records, default_project: str) -> None:
        self._store = store
        self._records = records
        self._default_project = default_project

    async def find_project(self, caller: Caller, place: Place, *, to_edit: bool = False) -> str:
        """Where the request looks; a project by its name alone is checked by nothing (sessions spec 4.3).

        Raises Refused: 404 for a work that is not there, 403 for another's.
        """
        if place.work_id is not None:
            await self._check_work(caller, place.work_id, to_edit=to_edit)
        return place.project_id or place.work_id or self._default_project

    async def check_session(self, caller: Caller, session_id: str) -> None:
        """Raises Refused: unknown and foreign alike, so that ids cannot be tried."""
        _check_owner(caller, await self._store.find_session(caller.tenant, session_id), "session")

    async def check_entry(self, caller: Caller, entry_id: str) -> UUID:
        """Raises Refused, as above."""
        try:
            id_ = UUID(entry_id)
        except ValueError:
            raise _foreign("entry") from None
        found = await self._records.find(caller.tenant, [id_])
        _check_owner(caller, found.get(str(id_)), "entry")
        return id_

    async def _check_work(self, caller: Caller, work_id: str, *, to_edit: bool) -> None:
        is_known = await self._store.is_known_work(caller.tenant, work_id)
        match judge_work(caller, work_id, to_edit=to_edit, is_known=is_known):
            case "unknown":
                raise Refused(404, "work not found")
            case "foreign":
                raise Refused(403, "no access to this work")
            case "granted":
                if not is_known:
                    await self._store.know_work(caller.tenant, work_id)


def _check_owner(caller: Caller, resource: Session | Record | None, kind: str) -> None:
    if resource is None or not may_change(caller, resource.metadata):
        raise _foreign(kind)


def _foreign(kind: str) -> Refused:
    return Refused(403, f"no {kind} of yours has this id")
