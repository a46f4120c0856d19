"""All that a tenant has, page by page: entries in the order of their ids, then sessions in that of theirs."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from services.api.records import Records
from services.api.rules import Record, Session
from services.api.store import ApiStore

PAGE_MAX = 25
"""The longest entries, so many of them, fit into an answer that clients take."""
SESSIONS = "sessions:"


@dataclass(frozen=True, slots=True)
class Page:
    records: Sequence[Record] = ()
    sessions: Sequence[Session] = ()
    next: str | None = None


class Exporting:
    def __init__(self, store: ApiStore, records: Records) -> None:
        self._store = store
        self._records = records

    async def read_page(self, tenant: str, after: str) -> Page:
        """`after`: `next` of the page before, or nothing."""
        if after.startswith(SESSIONS):
            return await self._read_sessions(tenant, after.removeprefix(SESSIONS))
        ids = await self._store.find_entries_after(tenant, UUID(after) if after else UUID(int=0), PAGE_MAX)
        found = await self._records.find(tenant, ids)
        return Page(records=list(found.values()), next=str(ids[-1]) if len(ids) == PAGE_MAX else SESSIONS)

    async def _read_sessions(self, tenant: str, after: str) -> Page:
        found = await self._store.find_sessions_after(tenant, after, PAGE_MAX)
        return Page(sessions=found, next=f"{SESSIONS}{found[-1].id}" if len(found) == PAGE_MAX else None)
