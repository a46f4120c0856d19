"""Puts parts of transcripts ahead of their run (`evidence.put`, contract 2.1)."""

from dataclasses import dataclass
from typing import Literal

from lorebus.asking import Unanswered
from lorebus.connection import Connection
from lorebus.contracts.evidence import PutEvidence, PutEvidenceReply, PutRefusal
from lorebus.contracts.recall import DegradedReason
from lorebus.contracts.runs import TranscriptPart
from lorebus.contracts.subjects import EVIDENCE_PUT, subject_for
from lorebus.errors import EventNotAcknowledged, LorebusError
from lorebus.insisting import insist
from lorebus.sending import explain_unreachable

OUTAGES = frozenset({"bus", "deadline", "store"})


class NotPut(LorebusError):
    """The part was not taken. The text says why."""

    def __init__(self, reason: PutRefusal | DegradedReason | Literal["no_room"], detail: str) -> None:
        super().__init__(detail)
        self.is_outage = reason in OUTAGES
        """Nothing is wrong with the part: it may travel another way."""
        self.is_for_all = self.is_outage or reason == "capture_disabled"
        """The next part would fare no better."""


@dataclass(frozen=True, slots=True)
class Putting:
    """Puts for one event; each part may wait for its answer for the whole patience."""

    connection: Connection
    tenant: str
    event_id: str
    patience_seconds: float

    async def put(self, part: TranscriptPart) -> TranscriptPart:
        """The part as the run names it. Raises NotPut, and EventNotAcknowledged where there is no bus at all."""
        if not await self.connection.wait_up(self.patience_seconds):
            # The run would wait as long again, and in vain.
            raise EventNotAcknowledged(explain_unreachable(self.connection, self.event_id, self.patience_seconds))
        question = PutEvidence(event_id=self.event_id, sha256=part.sha256 or "", data=part.data or "")
        reply = await self._ask(question.model_dump_json().encode())
        if reply.ref is None:
            raise NotPut(reply.error or "store", reply.reason or reply.error or "the writer did not take it")
        return part.model_copy(update={"data": None, "ref": reply.ref})

    async def _ask(self, body: bytes) -> PutEvidenceReply:
        subject = subject_for(EVIDENCE_PUT, self.tenant)
        try:
            return await insist(self.connection, subject, body, PutEvidenceReply, self.patience_seconds)
        except Unanswered as silence:
            raise NotPut(silence.reason, silence.detail) from silence
