"""`evidence.put`: takes a part of a transcript that is too large for its run's message."""

import base64
import binascii
import hashlib

from lorebus.contracts.evidence import PutEvidence, PutEvidenceReply, PutRefusal

from libs.common.administered_settings import AdministeredSettings
from libs.common.domain.setting_keys import TRANSCRIPT_CAPTURE_ENABLED, TRANSCRIPT_MAX_BYTES
from libs.common.errors import StoreUnavailable
from services.writer.parts import Part, Parts


class Putting:
    def __init__(self, parts: Parts, settings: AdministeredSettings) -> None:
        self._parts = parts
        self._settings = settings

    async def put(self, question: PutEvidence, tenant: str) -> PutEvidenceReply:
        data = _decode(question.data)
        if data is None:
            return refuse("invalid_request", "data: not base64")
        if hashlib.sha256(data).hexdigest() != question.sha256:
            return refuse("checksum_mismatch", "sha256: not that of the bytes in data")
        try:
            return await self._keep(Part(tenant, question.event_id, question.sha256, data))
        except StoreUnavailable:
            return refuse("store", "the database did not answer; put the part again")

    async def _keep(self, part: Part) -> PutEvidenceReply:
        if not await self._settings.get(TRANSCRIPT_CAPTURE_ENABLED, part.tenant):
            return refuse("capture_disabled", f"{TRANSCRIPT_CAPTURE_ENABLED.name} is off: publish without transcripts")
        bytes_max = await self._settings.get(TRANSCRIPT_MAX_BYTES, part.tenant)
        if not await self._parts.insert_part(part, bytes_max):
            return refuse("too_large", f"the event holds {bytes_max} bytes: {TRANSCRIPT_MAX_BYTES.name} allows no more")
        return PutEvidenceReply(ref=part.sha256)


def refuse(error: PutRefusal, reason: str) -> PutEvidenceReply:
    return PutEvidenceReply(error=error, reason=reason)


def _decode(data: str) -> bytes | None:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
