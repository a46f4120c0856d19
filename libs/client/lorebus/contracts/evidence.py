"""`evidence.put`: a part of a transcript that is too large for its run's message, put ahead of it (contract 2.1)."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from lorebus.contracts.envelope import Identifier, Message

PART_BYTES_MAX = 512 * 1024
"""Of one part, as carried."""
PART_BASE64_CHARS_MAX = 4 * ((PART_BYTES_MAX + 2) // 3)

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
PutRefusal = Literal["invalid_request", "checksum_mismatch", "capture_disabled", "too_large", "store"]


class PutEvidence(Message):
    """One part, for the run that will be published under this event id. Putting it again changes nothing."""

    event_id: Identifier
    sha256: Sha256
    """Of the bytes as carried: packed, where they are packed."""
    data: Annotated[str, Field(max_length=PART_BASE64_CHARS_MAX)]
    """base64"""


class PutEvidenceReply(Message):
    """What the part is called in the run, or why it was not taken."""

    ref: str | None = None
    error: PutRefusal | None = None
    reason: str | None = None
