"""The service's statements about sessions, works and which entries there are; `records` reads the entries."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal
from uuid import UUID

import sqlalchemy as sa
from lorebus.contracts.facts.api import SessionClosed, SessionOpened
from lorebus.contracts.facts.fact import MemoryEvent
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.database import outages_as_store_unavailable
from libs.common.outbox import insert_events
from libs.common.schema import entries, sessions, works
from services.api.rules import Session

SWEPT_MAX = 200
"""Sessions closed in one transaction."""

EndReason = Literal["closed", "idle"]

_SESSION = (sessions.c.id, sessions.c.project, sessions.c.metadata, sessions.c.started_at, sessions.c.ended_at)


class ApiStore:
    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        # A single read needs no transaction, which would cost two round trips more.
        self._reader = engine.execution_options(isolation_level="AUTOCOMMIT")

    async def ping(self) -> None:
        """Raises StoreUnavailable."""
        async with self._reading() as connection:
            await connection.execute(sa.select(1))

    async def open_session(self, tenant: str, new_id: str, project: str, metadata: Mapping[str, Any]) -> Session:
        """The session of this id, opened now or before."""
        values = {"tenant": tenant, "id": new_id, "project": project, "metadata": dict(metadata)}
        opening = insert(sessions).values(values).on_conflict_do_nothing().returning(sessions.c.id)
        async with self._writing() as connection:
            if (await connection.execute(opening)).one_or_none():
                fact = SessionOpened(tenant=tenant, session_id=new_id, project=project)
                await insert_events(connection, [fact])
            rows = await connection.execute(sa.select(*_SESSION).filter_by(tenant=tenant, id=new_id))
            return Session(**rows.mappings().one())

    async def find_session(self, tenant: str, session_id: str) -> Session | None:
        async with self._reading() as connection:
            rows = await connection.execute(sa.select(*_SESSION).filter_by(tenant=tenant, id=session_id))
            row = rows.mappings().one_or_none()
        return Session(**row) if row else None

    async def list_sessions(self, tenant: str, project: str | None, limit: int) -> list[Session]:
        """The newest first; None: of all projects."""
        query = sa.select(*_SESSION).filter_by(tenant=tenant)
        if project is not None:
            query = query.filter_by(project=project)
        newest = query.order_by(sessions.c.started_at.desc(), sessions.c.id).limit(limit)
        async with self._reading() as connection:
            return [Session(**row) for row in (await connection.execute(newest)).mappings()]

    async def close_session(self, tenant: str, session_id: str) -> bool:
        """Whether it was open until now."""
        this = sa.and_(sessions.c.tenant == tenant, sessions.c.id == session_id, sessions.c.ended_at.is_(None))
        async with self._writing() as connection:
            return await _end(connection, this, "closed") > 0

    async def delete_session(self, tenant: str, session_id: str) -> None:
        async with self._writing() as connection:
            await connection.execute(sa.delete(sessions).filter_by(tenant=tenant, id=session_id))

    async def close_idle_sessions(self, idle_seconds: float) -> int:
        """Of all tenants, the longest idle first. Returns how many."""
        idle = sessions.c.used_at < sa.func.now() - sa.text(f"interval '{idle_seconds} seconds'")
        found = sa.select(sessions.c.tenant, sessions.c.id).where(sessions.c.ended_at.is_(None), idle)
        chosen = found.order_by(sessions.c.used_at).limit(SWEPT_MAX).with_for_update(skip_locked=True).cte("chosen")
        these = sa.tuple_(sessions.c.tenant, sessions.c.id).in_(sa.select(chosen))
        async with self._writing() as connection:
            return await _end(connection, these, "idle")

    async def find_session_entries(self, tenant: str, session_id: str) -> list[UUID]:
        async with self._reading() as connection:
            query = sa.select(entries.c.item_id).filter_by(tenant=tenant, session_id=session_id)
            return list((await connection.execute(query)).scalars())

    async def find_entries_after(self, tenant: str, after: UUID, limit: int) -> list[UUID]:
        """By id."""
        query = sa.select(entries.c.item_id).filter_by(tenant=tenant).where(entries.c.item_id > after)
        async with self._reading() as connection:
            return list((await connection.execute(query.order_by(entries.c.item_id).limit(limit))).scalars())

    async def find_sessions_after(self, tenant: str, after: str, limit: int) -> list[Session]:
        """By id."""
        query = sa.select(*_SESSION).filter_by(tenant=tenant).where(sessions.c.id > after)
        async with self._reading() as connection:
            rows = await connection.execute(query.order_by(sessions.c.id).limit(limit))
            return [Session(**row) for row in rows.mappings()]

    async def count_entries(self, ids: Sequence[UUID]) -> int:
        """How many of them are still there."""
        query = sa.select(sa.func.count()).select_from(entries).where(entries.c.item_id == _any_of(ids))
        async with self._reading() as connection:
            return (await connection.execute(query)).scalar_one()

    async def is_known_work(self, tenant: str, work_id: str) -> bool:
        async with self._reading() as connection:
            query = sa.select(works.c.id).filter_by(tenant=tenant, id=work_id)
            return (await connection.execute(query)).one_or_none() is not None

    async def know_work(self, tenant: str, work_id: str) -> None:
        async with self._writing() as connection:
            await connection.execute(insert(works).values(tenant=tenant, id=work_id).on_conflict_do_nothing())

    @asynccontextmanager
    async def _reading(self) -> AsyncGenerator[AsyncConnection]:
        with outages_as_store_unavailable():
            async with self._reader.connect() as connection:
                yield connection

    @asynccontextmanager
    async def _writing(self) -> AsyncGenerator[AsyncConnection]:
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                yield connection


def _any_of(ids: Sequence[UUID]) -> sa.ColumnElement[bool]:
    """One parameter, however many they are, so that the statement stays prepared."""
    return sa.any_(sa.literal(list(ids), ARRAY(postgresql.UUID(as_uuid=True))))


async def _end(connection: AsyncConnection, these: sa.ColumnElement[bool], reason: EndReason) -> int:
    """Ends sessions and says so; one that another transaction ended meanwhile is left."""
    ending = sa.update(sessions).where(these, sessions.c.ended_at.is_(None))
    values = {"ended_at": sa.func.now(), "end_reason": reason}
    columns = (sessions.c.tenant, sessions.c.id, sessions.c.project)
    rows = (await connection.execute(ending.values(values).returning(*columns))).all()
    facts: list[MemoryEvent] = [
        SessionClosed(tenant=row.tenant, session_id=row.id, project=row.project, reason=reason) for row in rows
    ]
    await insert_events(connection, facts)
    return len(rows)
