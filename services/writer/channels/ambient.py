"""`channel.ambient`: what is done for a channel while nobody asks it anything, in this order.

digest         its newest memories, named for whoever wants to tell of them
consolidation  a request of its own to the consolidator, unless the channel has opted out
ingestion      the page of messages, as a command of its own, if one came along
flagging       a look through the organization's notes, whose failure stops nothing else

The requests are queued in the transaction that ends the pass, so that each counts once, however often it is repeated.
"""

from typing import Any
from uuid import UUID, uuid5

import structlog
from lorebus.contracts.channels import AmbientPass
from lorebus.contracts.consolidation import RequestConsolidation
from lorebus.contracts.envelope import Envelope
from lorebus.contracts.facts.channels import ChannelAmbient, ChannelFlagged
from lorebus.contracts.memory import WriteChannelMessages
from lorebus.contracts.subjects import CHANNEL_AMBIENT, CONSOLIDATION_REQUESTED, MEMORY_WRITE, subject_for
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.bus.consume import Consumption
from libs.common.bus.relay import Relay
from libs.common.bus.streams import AMBIENT
from libs.common.channels import Channel, ChannelDirectory
from libs.common.database import outages_as_store_unavailable
from libs.common.event_copies import erase_message
from libs.common.inbox import Claim, Inbox, Outcome
from libs.common.outbox import insert_events, insert_message
from services.writer.channels.flagging import Flagged, Flagging
from services.writer.channels.notes import ChannelNotes
from services.writer.ending import end_event

DIGEST_MAX = 15
ACTOR = "ambient"
_EVENTS = UUID("9b6f0b0e-6b6f-5a0c-8a55-0d6c2f4f1f58")

_log = structlog.get_logger("writer")


class Ambient:
    def __init__(
        self,
        engine: AsyncEngine,
        inbox: Inbox,
        relay: Relay,
        directory: ChannelDirectory,
        *,
        notes: ChannelNotes,
        flagging: Flagging,
    ) -> None:
        self._engine = engine
        self._inbox = inbox
        self._relay = relay
        self._directory = directory
        self._notes = notes
        self._flagging = flagging

    def consumption(self) -> Consumption[AmbientPass]:
        return Consumption(
            service="writer", subject=CHANNEL_AMBIENT, message=AmbientPass, source=AMBIENT, handle=self.handle
        )

    async def handle(self, command: AmbientPass, claim: Claim) -> None:
        tenant = claim.receipt.tenant
        channel = await self._directory.find(tenant, command.key)
        if channel is None or not channel.is_active:
            await self._end(claim, Outcome("skipped", "channel_inactive" if channel else "channel_unknown"))
            return
        digest = [str(note.id) for note in await self._notes.find_newest(tenant, channel.key, DIGEST_MAX)]
        requests = build_requests(command, channel)
        flagged = await self._flagging.look(channel, f"{CHANNEL_AMBIENT}:{command.event_id}")
        facts = build_facts(command, channel, digest, requests, flagged)
        await self._end(claim, Outcome("written"), requests, facts)
        _log.info("writer.channel_ambient", event_id=command.event_id, flagging=flagged.reason)

    async def _end(
        self,
        claim: Claim,
        outcome: Outcome,
        requests: dict[str, Envelope] | None = None,
        facts: tuple[ChannelAmbient, ChannelFlagged] | tuple[()] = (),
    ) -> None:
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                await end_event(connection, self._inbox, claim, outcome)
                # It may hold what people wrote to each other, which goes on as a message of its own.
                await erase_message(connection, claim.receipt)
                await _queue(connection, claim.receipt.tenant, requests or {})
                await insert_events(connection, facts)
        self._relay.nudge()


def build_requests(command: AmbientPass, channel: Channel) -> dict[str, Envelope]:
    """By subject, each under an event id that the same pass always gives."""

    def event_id(part: str) -> str:
        return str(uuid5(_EVENTS, f"{command.event_id}/{part}"))

    requests: dict[str, Envelope] = {}
    if channel.consolidation_enabled:
        requests[CONSOLIDATION_REQUESTED] = RequestConsolidation(
            event_id=event_id("consolidation"), channel=channel.key, actor=ACTOR
        )
    if command.messages:
        requests[MEMORY_WRITE] = WriteChannelMessages(
            event_id=event_id("ingest"), channel=command.channel, org_id=command.org_id, messages=command.messages
        )
    return requests


def build_facts(
    command: AmbientPass, channel: Channel, digest: list[str], requests: dict[str, Envelope], flagged: Flagged
) -> tuple[ChannelAmbient, ChannelFlagged]:
    about: dict[str, Any] = {"tenant": channel.tenant, "event_id": command.event_id, "channel": channel.key}
    ids = {subject: request.event_id for subject, request in requests.items()}
    done = ChannelAmbient(
        **about,
        digest=digest,
        consolidation_event_id=ids.get(CONSOLIDATION_REQUESTED),
        ingest_event_id=ids.get(MEMORY_WRITE),
    )
    found = [str(id_) for id_ in flagged.ids]
    return done, ChannelFlagged(**about, reason=flagged.reason, candidates=flagged.candidates, ids=found)


async def _queue(connection: AsyncConnection, tenant: str, requests: dict[str, Envelope]) -> None:
    for subject, request in requests.items():
        payload = request.model_dump(mode="json", by_alias=True, exclude_none=True)
        await insert_message(connection, subject_for(subject, tenant), payload)
