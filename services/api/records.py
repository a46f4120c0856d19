"""What every search and every context asks of the database, over a bare pool: at a third of the CPU (libs.common)."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast
from uuid import UUID

import asyncpg

from libs.common.database import outages_as_store_unavailable
from services.api.rules import Record

FIND = """
select memory_items.id::text, summary as content, tags, metadata, session_id, scopes.key as project,
    memory_items.created_at, held_at is not null as held
from memory_items join entries on entries.item_id = memory_items.id join scopes on scopes.id = scope_id
where memory_items.tenant = $1 and memory_items.id = any($2::uuid[])
"""
USE_SESSION = """
update sessions set used_at = now()
where tenant = $1 and id = $2 and ended_at is null and used_at < now() - interval '1 second'
"""

SECONDS_MAX = 1.5
"""With what a recall may take it is less than hosts wait for a context."""


class Records:
    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def find(self, tenant: str, ids: Sequence[UUID]) -> dict[str, Record]:
        """Entries by id; those that are not there are left out. Raises StoreUnavailable."""
        async with self._in_time():
            rows = cast("list[dict[str, Any]]", await self._pool.fetch(FIND, tenant, list(ids)))
        return {row["id"]: Record(**{**row, "metadata": json.loads(row["metadata"])}) for row in rows}

    async def use_session(self, tenant: str, session_id: str) -> None:
        """Something happened in it, so it is not idle: noted once a second. Raises StoreUnavailable."""
        async with self._in_time():
            await self._pool.execute(USE_SESSION, tenant, session_id)

    @asynccontextmanager
    async def _in_time(self) -> AsyncGenerator[None]:
        with outages_as_store_unavailable():
            async with asyncio.timeout(SECONDS_MAX):
                yield
