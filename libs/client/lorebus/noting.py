"""Notes: memories that their writer worded itself (contract 2.4)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Required, TypedDict
from uuid import uuid4

from lorebus.asking import Unanswered
from lorebus.connection import Connection
from lorebus.contracts.envelope import build_message
from lorebus.contracts.memory import FailureType, SaveReply, WriteMemory
from lorebus.contracts.subjects import MEMORY_SAVE, MEMORY_WRITE
from lorebus.errors import InvalidMessage
from lorebus.insisting import insist
from lorebus.sending import MESSAGE_BYTES_MAX, Parcel, Published, pack, send


class NoteFields(TypedDict, total=False):
    """The fields of a note, as WriteMemory declares them."""

    repository: Required[str]
    writer: Required[str]
    summary: Required[str]
    rationale: str
    run_id: str | None
    workflow_id: str | None
    failure_type: FailureType | None
    metadata: Mapping[str, Any]
    supersede: bool
    event_id: str
    occurred_at: datetime


async def publish_note(connection: Connection, tenant: str, fields: NoteFields, patience_seconds: float) -> Published:
    """Raises InvalidMessage before anything is sent, EventNotAcknowledged when patience ends."""
    return await send(connection, _pack(fields, tenant, MEMORY_WRITE), patience_seconds)


async def save_note(connection: Connection, tenant: str, fields: NoteFields, deadline_seconds: float) -> SaveReply:
    """Raises InvalidMessage for wrong fields; whatever is down is told in the reply."""
    parcel = _pack(fields, tenant, MEMORY_SAVE)
    try:
        return await insist(connection, parcel.subject, parcel.body, SaveReply, deadline_seconds)
    except Unanswered as silence:
        return SaveReply(error="deadline" if silence.reason == "deadline" else "bus", reason=silence.detail)


def _pack(fields: NoteFields, tenant: str, subject: str) -> Parcel:
    note = build_message(WriteMemory, {"event_id": str(uuid4()), **fields, "kind": "note"})
    parcel = pack("note", note, subject, tenant)
    if parcel.size > MESSAGE_BYTES_MAX:
        raise InvalidMessage(f"the note is {parcel.size // 1024 + 1} KiB; at most {MESSAGE_BYTES_MAX // 1024} fit")
    return parcel
