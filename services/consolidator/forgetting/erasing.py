"""Clears the bus behind a delete: the messages of forgotten events that a stream still holds.

Deleting by sequence is the one way in which JetStream overwrites a message's bytes; a purge, an expiry or an
acknowledgement leaves them in its files. Each is looked for again afterwards, and stays on the list until it is not
found. A broker that is away is asked again, for as long as it takes. The time of a message guards against a stream that
was made anew, where another message has the number by now.
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa
import structlog
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.api import RawStreamMsg
from nats.js.errors import APIError, NotFoundError
from nats.js.errors import Error as JetStreamError
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from libs.common.event_copies import request_late_erasures
from libs.common.schema import bus_erasures

_log = structlog.get_logger("consolidator")

POLL_SECONDS = 10.0
BATCH_MAX = 100
_SAME_TIME = timedelta(milliseconds=1)
"""The client library reads a broker's time through a float."""


@dataclass(frozen=True, slots=True)
class HeldMessage:
    """Where a stream holds, or held, a message of a forgotten event."""

    stream: str
    stream_sequence: int
    published_at: datetime


class Erasing:
    """Runs until cancelled; `nudge` after a delete saves the wait for the next look. Copies may work side by side."""

    def __init__(self, engine: AsyncEngine, client: Client, *, poll_seconds: float = POLL_SECONDS) -> None:
        self._engine = engine
        self._jetstream = client.jetstream()
        self._poll_seconds = poll_seconds
        self._nudged = asyncio.Event()

    def nudge(self) -> None:
        self._nudged.set()

    async def run(self) -> None:
        while True:
            try:
                await self.erase()
            except (SQLAlchemyError, OSError, TimeoutError, NatsError, JetStreamError) as error:
                _log.warning("consolidator.erasing_postponed", error=type(error).__name__)
            await self._wait()

    async def erase(self) -> int:
        """All that is on the list now. Returns how many messages are verified gone; those that stand stay on it."""
        total, after = 0, ("", 0)
        while messages := await self._find_next(after):
            for message in messages:
                if await self._is_erased(message):
                    await self._forget(message)
                    total += 1
            after = (messages[-1].stream, messages[-1].stream_sequence)
        return total

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._poll_seconds):
                await self._nudged.wait()
        except TimeoutError:
            return
        self._nudged.clear()

    async def _find_next(self, after: tuple[str, int]) -> list[HeldMessage]:
        columns = bus_erasures.c
        place = sa.tuple_(columns.stream, columns.stream_sequence)
        query = sa.select(columns.stream, columns.stream_sequence, columns.published_at)
        query = query.where(place > after).order_by(columns.stream, columns.stream_sequence).limit(BATCH_MAX)
        async with self._engine.begin() as connection:
            await request_late_erasures(connection)
            return [HeldMessage(*row) for row in await connection.execute(query)]

    async def _is_erased(self, message: HeldMessage) -> bool:
        """Whether the stream does not hold it, now that it was told to delete it."""
        found = await self._find(message)
        if found is None or not _is_same(found, message):
            return True
        await self._delete(message)
        gone = await self._find(message) is None
        if not gone:
            _log.error("consolidator.message_stands", stream=message.stream, sequence=message.stream_sequence)
        return gone

    async def _find(self, message: HeldMessage) -> RawStreamMsg | None:
        """Asks the stream's leader: a copy elsewhere may be late. No stream holds no message."""
        try:
            return await self._jetstream.get_msg(message.stream, message.stream_sequence)
        except NotFoundError:
            return None

    async def _delete(self, message: HeldMessage) -> None:
        try:
            await self._jetstream.delete_msg(message.stream, message.stream_sequence)
        except APIError as error:
            # Another copy was faster, or it cannot be: the look that follows tells.
            _log.info("consolidator.delete_refused", stream=message.stream, code=error.err_code)

    async def _forget(self, message: HeldMessage) -> None:
        done = sa.delete(bus_erasures).filter_by(stream=message.stream, stream_sequence=message.stream_sequence)
        async with self._engine.begin() as connection:
            await connection.execute(done.filter_by(published_at=message.published_at))


def _is_same(found: RawStreamMsg, message: HeldMessage) -> bool:
    return found.time is not None and abs(found.time - message.published_at) <= _SAME_TIME
