"""`memory.save`: what `memory.write` does, for a caller that waits for the id.

The inbox makes it count once, as it does for messages: asked again with the same event id, the caller gets the same
answer, and one that came by `memory.write` before is the one that is answered with.
"""

from datetime import UTC, datetime

from lorebus.contracts.memory import AnyWrite, SaveRefusal, SaveReply, WriteToChannel
from lorebus.contracts.subjects import MEMORY_SAVE, MEMORY_WRITE

from libs.common.database import outages_as_store_unavailable
from libs.common.errors import ClaimLost, EmbedderUnavailable, GateUnavailable, StoreUnavailable
from libs.common.inbox import Claim, Inbox, Leased, Outcome, Receipt, Settled, content_hash
from libs.common.tombstones import FORGOTTEN
from services.writer.entries import receipt_of_write, source_of_write
from services.writer.rows import Kept
from services.writer.rules import Source
from services.writer.service import WriterService
from services.writer.store import WriterStore


class Saving:
    def __init__(self, inbox: Inbox, store: WriterStore, service: WriterService) -> None:
        self._inbox = inbox
        self._store = store
        self._service = service

    async def save(self, message: AnyWrite, tenant: str) -> SaveReply:
        if message.tenant not in {None, tenant}:
            return refuse("invalid_request", "tenant: the payload names another tenant than its subject")
        if isinstance(message, WriteToChannel):
            return refuse("invalid_request", "kind: what is written to a channel goes to memory.write")
        receipt = _receipt(message, tenant)
        try:
            with outages_as_store_unavailable():
                claim = await self._inbox.claim(receipt)
            return await self._answer(claim, message, source_of_write(message, tenant, receipt.published_at))
        except StoreUnavailable:
            return refuse("store", "the database did not answer; save it again with the same event id")
        except ClaimLost:
            return refuse("in_work", "another writer took it over; save it again with the same event id")

    async def _answer(self, claim: Claim | Leased | Settled, message: AnyWrite, source: Source) -> SaveReply:
        match claim:
            case Leased(seconds_left=seconds):
                return refuse("in_work", f"it is being written; ask again in {seconds:.0f} s")
            case Settled(is_conflict=True):
                return refuse("conflict", "another note has this event id; the first one stands")
            case Settled():
                return await self._answer_settled(source)
            case Claim():
                return await self._write(claim, message, source)

    async def _write(self, claim: Claim, message: AnyWrite, source: Source) -> SaveReply:
        try:
            result = await self._service.keep_told(source, message, claim)
        except GateUnavailable:
            return await self._give_back(claim, "gate")
        except EmbedderUnavailable:
            return await self._give_back(claim, "embedder")
        return _stored(result) if isinstance(result, Kept) else await self._refused(source, result)

    async def _give_back(self, claim: Claim, reason: SaveRefusal) -> SaveReply:
        await self._inbox.release(claim)
        return refuse(reason, f"the {reason} did not answer; save it again with the same event id")

    async def _answer_settled(self, source: Source) -> SaveReply:
        kept = await self._store.find_kept(source)
        return _stored(kept) if kept else await self._refused(source, await self._store.get_outcome(source))

    async def _refused(self, source: Source, outcome: Outcome) -> SaveReply:
        if outcome.reason == "origin_quarantined":
            return _turned_away(await self._store.find_quarantine_end(source))
        if outcome.reason == FORGOTTEN:
            return refuse("forgotten", "it was asked to be forgotten; save it with a new event id if it is to stay")
        if outcome.patterns:
            reason = "the memory gate found a pattern of prompt injection; reword the note"
            return SaveReply(error="matched", reason=reason, patterns=list(outcome.patterns))
        return refuse("incomplete", "the memory gate could not scan the whole note; save it later with a new event id")


def refuse(error: SaveRefusal, reason: str) -> SaveReply:
    return SaveReply(error=error, reason=reason)


def _stored(kept: Kept) -> SaveReply:
    return SaveReply(id=str(kept.id), created_at=kept.created_at, held=kept.is_held)


def _turned_away(until: datetime | None) -> SaveReply:
    """`until`: None where the quarantine is over by now."""
    when = f"after {until:%Y-%m-%d %H:%M:%S} UTC" if until else "now"
    reason = f"too many notes of this writer were refused, so this one was not read; save it {when} with a new event id"
    return refuse("origin_quarantined", reason)


def _receipt(message: AnyWrite, tenant: str) -> Receipt:
    return Receipt(
        tenant=tenant,
        schema_name=MEMORY_WRITE,
        event_id=message.event_id,
        payload_sha256=content_hash(message),
        stream=MEMORY_SAVE,
        stream_sequence=0,
        published_at=datetime.now(UTC),
        **receipt_of_write(message),
    )
