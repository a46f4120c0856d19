"""Live facts from the stream EVENTS: each one once, in order, none missed over reconnects.

A tap pulls through a nameless consumer of its own that acknowledges nothing. Whenever the consumer may be
gone or a fact may have been lost on the way (silence without heartbeats, a gap in its count, a new
connection) the tap makes a new one that starts behind the last fact it handed out. Because it pulls, a slow
reader is only late: a core subscription would drop facts, and nats-py's own ordered consumer starts at the
beginning of the stream when it is reset before its first fact.
"""

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Self
from uuid import uuid4

from nats.aio.msg import Msg
from nats.errors import Error
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import NotFoundError

from lorebus.connection import Connection
from lorebus.contracts.envelope import build_message, parse_object
from lorebus.contracts.events import EVENTS
from lorebus.contracts.facts.fact import MemoryEvent
from lorebus.contracts.subjects import MEMORY_EVENT, event_subject
from lorebus.errors import InvalidMessage, MemoryUnavailable
from lorebus.pulling import Pull, open_pull

STREAM = "EVENTS"
IDLE_SECONDS_MAX = 60.0
"""The server forgets a consumer whose tap is gone for so long."""
RETRY_SECONDS = 0.5
REOPEN_SECONDS = 0.05

Since = datetime | timedelta | Literal["start"] | None
"""From when: a time, an age, everything the stream holds, or (None) only what comes from now on."""

KIND = re.compile(r"[a-z][a-z_]*")

log = logging.getLogger("lorebus")


@dataclass(frozen=True, slots=True)
class TappedEvent:
    """One fact as it stands in the stream."""

    kind: str
    tenant: str
    subject: str
    sequence: int
    published_at: datetime
    payload: dict[str, Any]

    @property
    def event(self) -> MemoryEvent | None:
        """The fact in its type, or None where this version knows no such kind."""
        known = EVENTS.get(self.kind)
        with contextlib.suppress(InvalidMessage):
            return build_message(known, self.payload) if known else None
        return None


class Tap(AsyncIterator[TappedEvent]):
    """`async for fact in tap`. Entering it as a context sets its place in the stream before the first read."""

    def __init__(self, connection: Connection, tenant: str, kinds: Collection[str], since: Since) -> None:
        self.connection = connection
        self.tenant = tenant
        self.kinds = frozenset(kinds)
        if not all(KIND.fullmatch(kind) for kind in self.kinds):
            raise InvalidMessage("a kind of event is a word such as lesson_written")
        # One filter, never a list: its subject then stands in the request, where permissions can guard it.
        self.subject = event_subject(next(iter(self.kinds)) if len(self.kinds) == 1 else "*", tenant)
        self._since = datetime.now(UTC) - since if isinstance(since, timedelta) else since
        self._last_sequence: int | None = None
        self._pull: Pull | None = None

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    async def __anext__(self) -> TappedEvent:
        while True:
            message = await (self._pull or await self._open()).next_message()
            if message is None:
                await self.close()
                await asyncio.sleep(REOPEN_SECONDS)
                continue
            fact = read_fact(message, self.tenant)
            self._last_sequence = fact.sequence
            if not self.kinds or fact.kind in self.kinds:
                return fact

    async def close(self) -> None:
        """Gives the consumer back; reading on opens a new one where this one ended."""
        pull, self._pull = self._pull, None
        if pull is not None:
            await pull.close()

    async def _open(self) -> Pull:
        """A pull from the place reached, tried until the bus gives one."""
        while self._pull is None:
            await self.connection.wait_up()
            try:
                self._pull = await open_pull(self.connection.client, STREAM, self._consumer_config())
            except NotFoundError as error:
                raise MemoryUnavailable(f"the bus has no stream {STREAM}: create it with `lorebus migrate`") from error
            except (Error, OSError) as error:
                log.debug("tap of %s: %s", self.subject, error)
                await asyncio.sleep(RETRY_SECONDS)
        if self._last_sequence is None:
            self._last_sequence = self._pull.sequence_before
        return self._pull

    def _consumer_config(self) -> ConsumerConfig:
        config = ConsumerConfig(
            name=f"tap-{uuid4().hex}",
            filter_subject=self.subject,
            ack_policy=AckPolicy.NONE,
            max_deliver=1,
            mem_storage=True,
            num_replicas=1,
            inactive_threshold=IDLE_SECONDS_MAX,
        )
        if self._last_sequence is not None:
            config.deliver_policy = DeliverPolicy.BY_START_SEQUENCE
            config.opt_start_seq = self._last_sequence + 1
        elif isinstance(self._since, datetime):
            config.deliver_policy = DeliverPolicy.BY_START_TIME
            config.opt_start_time = self._since
        else:
            config.deliver_policy = DeliverPolicy.ALL if self._since else DeliverPolicy.NEW
        return config


def read_fact(message: Msg, tenant: str) -> TappedEvent:
    """A fact that is no JSON object is handed out without a payload: a tap must not die of it."""
    try:
        payload = parse_object(message.data)
    except InvalidMessage:
        payload = {}
    kind = message.subject.removeprefix(f"{MEMORY_EVENT}.").split(".", 1)[0]
    place = message.metadata
    return TappedEvent(kind, tenant, message.subject, place.sequence.stream, place.timestamp, payload)
