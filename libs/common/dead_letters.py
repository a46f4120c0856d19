"""Dead letters: what could not be handled, kept with its reason until an operator replays or drops it.

The payload stays in Postgres with credentials masked; the stream DLQ gets a pointer.
"""

from typing import Any

import sqlalchemy as sa
from faststream.message import StreamMessage
from lorebus.contracts.facts.consumption import EventConflict, EventDead
from lorebus.contracts.subjects import DEAD_LETTER, subject_for
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.domain.masking import mask_text
from libs.common.inbox import Claim, Inbox, Leased, Outcome, Receipt, Settled
from libs.common.outbox import insert_events, insert_message
from libs.common.schema import dead_letters


class DeadLetters:
    """Writes the letter, the inbox row's end and the facts for taps in one transaction."""

    def __init__(self, engine: AsyncEngine, inbox: Inbox, service: str) -> None:
        self._engine = engine
        self._inbox = inbox
        self._service = service

    async def bury(self, claim: Claim, delivered: StreamMessage[Any], reason: str) -> None:
        """Ends a claimed event as dead."""
        receipt = claim.receipt
        async with self._engine.begin() as connection:
            await self._inbox.settle(connection, claim, Outcome(status="dead", reason=reason))
            letter_id = await self._insert(connection, receipt, delivered, reason, claim.failures)
            await self._announce(connection, receipt, reason, claim.failures, letter_id)

    async def bury_unreadable(self, receipt: Receipt, delivered: StreamMessage[Any], reason: str) -> None:
        """Ends a message that never became an event; its id is the hash of its bytes."""
        claim = await self._inbox.claim(receipt)
        if isinstance(claim, Leased | Settled):
            return
        await self.bury(claim, delivered, reason)

    async def report_conflict(self, receipt: Receipt) -> None:
        """Says that an event id came again with another payload."""
        event = EventConflict(tenant=receipt.tenant, schema_name=receipt.schema_name, event_id=receipt.event_id)
        async with self._engine.begin() as connection:
            await insert_events(connection, [event])

    async def _insert(
        self, connection: AsyncConnection, receipt: Receipt, delivered: StreamMessage[Any], reason: str, failures: int
    ) -> int:
        text = delivered.body.decode("utf-8", "replace")
        letter = sa.insert(dead_letters).values(
            tenant=receipt.tenant,
            service=self._service,
            schema_name=receipt.schema_name,
            event_id=receipt.event_id,
            subject=delivered.raw_message.subject,
            payload=mask_text(text).encode(),
            reason=reason,
            failures=failures,
        )
        return (await connection.execute(letter.returning(dead_letters.c.id))).scalar_one()

    async def _announce(
        self, connection: AsyncConnection, receipt: Receipt, reason: str, failures: int, letter_id: int
    ) -> None:
        event = EventDead(
            tenant=receipt.tenant,
            service=self._service,
            schema_name=receipt.schema_name,
            event_id=receipt.event_id,
            reason=reason,
            attempts=failures,
        )
        await insert_events(connection, [event])
        subject = subject_for(f"{DEAD_LETTER}.{self._service}", receipt.tenant)
        await insert_message(connection, subject, {**event.model_dump(exclude={"at"}), "dead_letter_id": letter_id})
