"""The inbox: every durable message is claimed here before work and ends here in one terminal state.

Bus redelivery, replays of a whole stream and duplicates from publishers all meet the same row, so each event
counts once. Leases and ages use Postgres' clock alone.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import sqlalchemy as sa
from lorebus.contracts.envelope import Message
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.errors import ClaimLost
from libs.common.schema import inbox, inbox_copies

_GIVEN_BACK = sa.text("'-infinity'::timestamptz")
"""As the end of a lease: it was given back, so whoever takes the event next takes it over from nobody."""

TerminalStatus = Literal["written", "skipped", "refused", "dead"]


@dataclass(frozen=True)
class Receipt:
    """A durable message as the bus delivered it."""

    tenant: str
    schema_name: str
    event_id: str
    payload_sha256: str
    stream: str
    stream_sequence: int
    published_at: datetime
    run_id: str | None = None
    repository: str | None = None


@dataclass(frozen=True)
class Claim:
    """The right to handle an event. `number` fences it: a later claim makes this one void."""

    receipt: Receipt
    number: int
    failures: int
    losses: int = 0
    """How often a service went away with the event in hand."""


@dataclass(frozen=True)
class Leased:
    """Another copy is at work on the event."""

    seconds_left: float


@dataclass(frozen=True)
class Settled:
    """The event is terminal already. `is_conflict`: it came with another payload then."""

    is_conflict: bool


@dataclass(frozen=True)
class Outcome:
    """How an event ended."""

    status: TerminalStatus
    reason: str | None = None
    patterns: Sequence[str] = ()
    item_ids: Sequence[UUID] = field(default_factory=tuple[UUID, ...])


def payload_hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def content_hash(message: Message) -> str:
    """For a message that may come in two ways, each of which words it in bytes of its own."""
    return payload_hash(message.model_dump_json(by_alias=True, exclude_none=True).encode())


class Inbox:
    """Claims and settles events of one installation."""

    def __init__(self, engine: AsyncEngine, lease_seconds: float) -> None:
        self._engine = engine
        self._lease = sa.text(f"interval '{lease_seconds} seconds'")

    async def claim(self, receipt: Receipt) -> Claim | Leased | Settled:
        """Takes the event, unless it is terminal or somebody else's lease still runs."""
        async with self._engine.begin() as connection:
            claimed = await self._insert_or_take(connection, receipt)
            if claimed is None or claimed.claims > 1:
                await _note_copy(connection, receipt)
            if claimed is not None:
                return Claim(receipt, number=claimed.claims, failures=claimed.failures, losses=claimed.losses)
            return await self._why_not(connection, receipt)

    async def _insert_or_take(self, connection: AsyncConnection, receipt: Receipt) -> sa.Row[Any, Any, Any] | None:
        new = insert(inbox).values(
            **receipt.__dict__, status="claimed", lease_until=sa.func.clock_timestamp() + self._lease
        )
        take = new.on_conflict_do_update(
            index_elements=[inbox.c.tenant, inbox.c.schema_name, inbox.c.event_id],
            set_={
                "claims": inbox.c.claims + 1,
                "losses": inbox.c.losses + sa.case((inbox.c.lease_until == _GIVEN_BACK, 0), else_=1),
                "lease_until": sa.func.clock_timestamp() + self._lease,
            },
            where=sa.and_(
                inbox.c.status == "claimed",
                inbox.c.lease_until < sa.func.clock_timestamp(),
                inbox.c.payload_sha256 == receipt.payload_sha256,
            ),
        ).returning(inbox.c.claims, inbox.c.failures, inbox.c.losses)
        return (await connection.execute(take)).one_or_none()

    async def _why_not(self, connection: AsyncConnection, receipt: Receipt) -> Leased | Settled:
        left = sa.func.extract("epoch", inbox.c.lease_until - sa.func.clock_timestamp())
        query = sa.select(inbox.c.status, inbox.c.payload_sha256, left.label("left")).where(*_is(receipt))
        row = (await connection.execute(query)).one()
        if row.status == "claimed":
            return Leased(seconds_left=max(0.0, float(row.left)))
        return Settled(is_conflict=row.payload_sha256 != receipt.payload_sha256)

    async def extend(self, claim: Claim) -> None:
        """A heartbeat: the work goes on. Raises ClaimLost when it is somebody else's by now."""
        async with self._engine.begin() as connection:
            await self._update(connection, claim, lease_until=sa.func.clock_timestamp() + self._lease)

    async def release(self, claim: Claim) -> None:
        """Gives an event back uncounted: the infrastructure was at fault, not the event."""
        async with self._engine.begin() as connection:
            await self._update(connection, claim, lease_until=_GIVEN_BACK)

    async def count_failure(self, claim: Claim) -> None:
        """Gives an event back after an error of its own."""
        async with self._engine.begin() as connection:
            await self._update(connection, claim, failures=inbox.c.failures + 1, lease_until=_GIVEN_BACK)

    async def settle(self, connection: AsyncConnection, claim: Claim, outcome: Outcome) -> None:
        """Makes the event terminal in the caller's transaction. Raises ClaimLost, which must roll it back."""
        await self._update(
            connection,
            claim,
            status=outcome.status,
            reason=outcome.reason,
            patterns=list(outcome.patterns),
            item_ids=list(outcome.item_ids),
            lease_until=None,
            terminal_at=sa.func.clock_timestamp(),
        )

    async def _update(self, connection: AsyncConnection, claim: Claim, **values: object) -> None:
        mine = sa.update(inbox).where(*_is(claim.receipt), inbox.c.status == "claimed", inbox.c.claims == claim.number)
        if (await connection.execute(mine.values(**values))).rowcount != 1:
            raise ClaimLost(f"event {claim.receipt.event_id} was taken over")


async def _note_copy(connection: AsyncConnection, receipt: Receipt) -> None:
    """Where a stream holds a known event once more, for whoever has to erase it."""
    is_elsewhere = sa.or_(inbox.c.stream != receipt.stream, inbox.c.stream_sequence != receipt.stream_sequence)
    known = sa.select(sa.literal(1)).where(*_is(receipt), is_elsewhere)
    if receipt.stream_sequence > 0 and await connection.scalar(known):
        copy = {name: getattr(receipt, name) for name in inbox_copies.c.keys()}  # noqa: SIM118 - a collection of columns
        await connection.execute(insert(inbox_copies).values(copy).on_conflict_do_nothing())


def _is(receipt: Receipt) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        inbox.c.tenant == receipt.tenant,
        inbox.c.schema_name == receipt.schema_name,
        inbox.c.event_id == receipt.event_id,
    )


@dataclass(frozen=True)
class Event:
    """What became of a durable message, as operators see it."""

    event_id: str
    run_id: str | None
    repository: str | None
    status: str
    reason: str | None
    patterns: Sequence[str]
    item_ids: Sequence[UUID]
    failures: int
    first_seen_at: datetime
    terminal_at: datetime | None


async def find_events(engine: AsyncEngine, tenant: str, *, status: str | None, limit: int) -> list[Event]:
    """The newest events of a tenant."""
    columns = [inbox.c[name] for name in Event.__dataclass_fields__]
    query = sa.select(*columns).where(inbox.c.tenant == tenant).order_by(inbox.c.first_seen_at.desc()).limit(limit)
    if status is not None:
        query = query.where(inbox.c.status == status)
    async with engine.connect() as connection:
        return [Event(**row) for row in (await connection.execute(query)).mappings()]
