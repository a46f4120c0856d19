"""The relay: moves facts from the outbox to the bus, in order, at least once, deduplicated by their number.

Any copy of any service may run one; a transaction lock lets one at a time work. A relay killed between
publishing and deleting publishes again under the same message id, which JetStream drops.
"""

import asyncio
import json
from typing import Any

import sqlalchemy as sa
import structlog
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.errors import Error as JetStreamError
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.schema import outbox

_log = structlog.get_logger("relay")
_LOCK = 0x10_4E_B6
_BATCH = 200
_PUBLISH_TIMEOUT_SECONDS = 10.0


class Relay:
    """Runs until cancelled; `nudge` after a commit saves the wait for the next look."""

    def __init__(self, engine: AsyncEngine, client: Client, *, poll_seconds: float = 1.0) -> None:
        self._engine = engine
        self._jetstream = client.jetstream(timeout=_PUBLISH_TIMEOUT_SECONDS)
        self._poll_seconds = poll_seconds
        self._nudged = asyncio.Event()

    def nudge(self) -> None:
        self._nudged.set()

    async def run(self) -> None:
        while True:
            try:
                while await self.move_batch() == _BATCH:
                    pass
            except (SQLAlchemyError, OSError, TimeoutError, NatsError, JetStreamError) as error:
                _log.warning("relay.postponed", error=type(error).__name__)
            await self._wait()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._poll_seconds):
                await self._nudged.wait()
        except TimeoutError:
            return
        self._nudged.clear()

    async def move_batch(self) -> int:
        """Publishes the oldest facts and deletes them. Returns how many."""
        async with self._engine.begin() as connection:
            if not await connection.scalar(sa.select(sa.func.pg_try_advisory_xact_lock(_LOCK))):
                return 0
            rows = (await connection.execute(sa.select(outbox).order_by(outbox.c.id).limit(_BATCH))).all()
            await asyncio.gather(*(self._publish(row) for row in rows))
            await self._delete(connection, [row.id for row in rows])
        return len(rows)

    async def _publish(self, row: sa.Row[Any]) -> None:
        payload = {**row.payload, "at": row.created_at.isoformat()}
        await self._jetstream.publish(
            row.subject, json.dumps(payload).encode(), headers={"Nats-Msg-Id": f"outbox-{row.id}"}
        )

    async def _delete(self, connection: AsyncConnection, ids: list[int]) -> None:
        if ids:
            await connection.execute(sa.delete(outbox).where(outbox.c.id.in_(ids)))
