"""Consuming durable messages: the one way that a service does it.

claim in the inbox → handle under a heartbeat → settled by the handler's own transaction → acknowledge

What cannot be read, and what fails five times by itself, becomes a dead letter. An outage never counts: the
message goes back to the stream with a growing delay. Attempts live in Postgres, since JetStream's own count
is forgotten at a restart. FastStream's default policy would drop a message at its first exception.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import structlog
from faststream import AckPolicy
from faststream.message import StreamMessage
from faststream.nats import NatsBroker, PullSub
from lorebus.contracts.envelope import DEFAULT_TENANT, Envelope, parse_message
from lorebus.contracts.subjects import tenant_of
from lorebus.errors import InvalidMessage
from nats.errors import Error as NatsError
from nats.js.api import ConsumerConfig
from sqlalchemy.exc import SQLAlchemyError

from libs.common.bus.streams import DurableConsumer
from libs.common.database import is_outage
from libs.common.dead_letters import DeadLetters
from libs.common.errors import ClaimLost, EmbedderUnavailable, GateUnavailable, ModelUnavailable, StoreUnavailable
from libs.common.inbox import Claim, Inbox, Leased, Receipt, Settled, payload_hash

_log = structlog.get_logger("bus")

FAILURES_MAX = 5
LOSSES_MAX = 50
"""A message that takes its service down each time it is handled is given up as well."""

DELAYS_SECONDS = (1.0, 2.0, 5.0, 15.0, 60.0, 300.0)
_OUTAGES = (GateUnavailable, EmbedderUnavailable, ModelUnavailable, StoreUnavailable)

MessageT = TypeVar("MessageT", bound=Envelope)


def retry_delay_seconds(tries: int, delays_seconds: Sequence[float] = DELAYS_SECONDS) -> float:
    """Grows with each try, spread by up to a quarter so that copies do not come back all at once."""
    step = delays_seconds[min(max(tries, 1), len(delays_seconds)) - 1]
    return step * random.uniform(1, 1.25)  # noqa: S311 - spreads load, hides nothing


@dataclass(frozen=True)
class Consumption(Generic[MessageT]):
    """One kind of durable message, and what a service does with it."""

    service: str
    subject: str
    message: type[MessageT]
    source: DurableConsumer
    handle: Callable[[MessageT, Claim], Awaitable[None]]
    """Does the work and settles the claim in its own transaction."""
    receipt: Callable[[MessageT], dict[str, str | None]] = lambda _message: {}
    """What the inbox row shows of the message, beside its id."""
    identify: Callable[[MessageT], str] | None = None
    """The hash that tells it from another one under the same id; None: that of its bytes."""


class Consumer(Generic[MessageT]):
    """Wraps a handler with everything that makes a message count exactly once."""

    def __init__(
        self,
        consumption: Consumption[MessageT],
        inbox: Inbox,
        dead_letters: DeadLetters,
        *,
        lease_seconds: float,
        handling_seconds_max: float = 180.0,
        delays_seconds: Sequence[float] = DELAYS_SECONDS,
    ) -> None:
        self._of = consumption
        self._inbox = inbox
        self._dead_letters = dead_letters
        self._heartbeat_seconds = lease_seconds / 3
        self._handling_seconds_max = handling_seconds_max
        self._delays_seconds = delays_seconds

    def subscribe(self, broker: NatsBroker, *, concurrency: int) -> None:
        broker.subscriber(
            config=ConsumerConfig(),
            stream=self._of.source.source,
            durable=self._of.source.name,
            pull_sub=PullSub(batch_size=concurrency, timeout=5.0),
            ack_policy=AckPolicy.MANUAL,
        )(self.receive)

    async def receive(self, delivered: StreamMessage[Any]) -> None:
        """Handles one delivery; never raises but for cancellation."""
        deliveries = delivered.raw_message.metadata.num_delivered
        try:
            if (wait_seconds := await self._process(delivered)) is None:
                await delivered.raw_message.ack_sync()
                return
        except asyncio.CancelledError:
            await delivered.raw_message.nak(delay=1)
            raise
        except (*_OUTAGES, SQLAlchemyError, NatsError, OSError, TimeoutError) as error:
            wait_seconds = retry_delay_seconds(deliveries, self._delays_seconds)
            _log.warning("bus.postponed", service=self._of.service, error=type(error).__name__, seconds=wait_seconds)
        # A lost ack or nak only means another delivery.
        with suppress(NatsError, OSError, TimeoutError):
            await delivered.raw_message.nak(delay=wait_seconds)

    async def _process(self, delivered: StreamMessage[Any]) -> float | None:
        """None when the message is done with, else the seconds until it should come again."""
        try:
            tenant = tenant_of(delivered.raw_message.subject, self._of.subject)
            message = self._parse(delivered.body, tenant)
        except InvalidMessage as error:
            await self._dead_letters.bury_unreadable(self._unreadable(delivered), delivered, str(error))
            return None
        receipt = self._receipt(delivered, tenant, message.event_id, self._of.receipt(message))
        if self._of.identify:
            receipt = replace(receipt, payload_sha256=self._of.identify(message))
        match await self._inbox.claim(receipt):
            case Leased(seconds_left=seconds):
                return seconds + 0.1
            case Settled(is_conflict=is_conflict):
                if is_conflict:
                    await self._dead_letters.report_conflict(receipt)
                return None
            case Claim() as claim:
                return await self._handle(message, claim, delivered)

    def _parse(self, body: bytes, tenant: str) -> MessageT:
        message = parse_message(self._of.message, body)
        if message.tenant not in {None, tenant}:
            raise InvalidMessage("the payload names another tenant than its subject")
        return message

    def _receipt(
        self, delivered: StreamMessage[Any], tenant: str, event_id: str, shown: dict[str, str | None]
    ) -> Receipt:
        position = delivered.raw_message.metadata
        return Receipt(
            tenant=tenant,
            schema_name=self._of.subject,
            event_id=event_id,
            payload_sha256=payload_hash(delivered.body),
            stream=self._of.source.stream,
            stream_sequence=position.sequence.stream,
            published_at=position.timestamp,
            **shown,
        )

    def _unreadable(self, delivered: StreamMessage[Any]) -> Receipt:
        """A receipt for a message that never became an event; a tenant that is none leaves it to the default one."""
        try:
            tenant = tenant_of(delivered.raw_message.subject, self._of.subject)
        except InvalidMessage:
            tenant = DEFAULT_TENANT
        return self._receipt(delivered, tenant, f"sha256:{payload_hash(delivered.body)}", {})

    async def _handle(self, message: MessageT, claim: Claim, delivered: StreamMessage[Any]) -> float | None:
        if claim.losses > LOSSES_MAX:
            await self._dead_letters.bury(claim, delivered, "the service went down each time it handled this")
            return None
        try:
            await self._with_heartbeat(message, claim, delivered)
        except ClaimLost:
            return self._heartbeat_seconds
        except _OUTAGES:
            await self._inbox.release(claim)
            raise
        except Exception as error:  # whatever a message breaks must not take its service along
            if is_outage(error):
                raise
            return await self._count(claim, delivered, error)
        return None

    async def _with_heartbeat(self, message: MessageT, claim: Claim, delivered: StreamMessage[Any]) -> None:
        heart = asyncio.create_task(self._beat(claim, delivered))
        try:
            async with asyncio.timeout(self._handling_seconds_max):
                await self._of.handle(message, claim)
        finally:
            heart.cancel()

    async def _beat(self, claim: Claim, delivered: StreamMessage[Any]) -> None:
        while True:
            await asyncio.sleep(self._heartbeat_seconds)
            with suppress(SQLAlchemyError, NatsError, OSError, TimeoutError, ClaimLost):
                await self._inbox.extend(claim)
                await delivered.raw_message.in_progress()

    async def _count(self, claim: Claim, delivered: StreamMessage[Any], error: Exception) -> float | None:
        failures = claim.failures + 1
        _log.error(
            "bus.handling_failed",
            service=self._of.service,
            event_id=claim.receipt.event_id,
            failures=failures,
            error=type(error).__name__,
            exc_info=True,
        )
        if failures >= FAILURES_MAX:
            await self._dead_letters.bury(claim, delivered, f"handling failed {failures} times: {type(error).__name__}")
            return None
        await self._inbox.count_failure(claim)
        return retry_delay_seconds(failures, self._delays_seconds)
