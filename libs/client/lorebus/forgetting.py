"""Having memories forgotten (contract 2.5)."""

from collections.abc import Sequence
from typing import Required, TypedDict
from uuid import UUID, uuid4

from lorebus.connection import Connection
from lorebus.contracts.envelope import build_message
from lorebus.contracts.memory import DeleteMemory
from lorebus.contracts.subjects import MEMORY_DELETE
from lorebus.sending import Published, pack, send


class ForgetFields(TypedDict, total=False):
    """The fields of a command, as DeleteMemory declares them: one of the first four."""

    ids: Sequence[str | UUID]
    person: str
    session_id: str
    event_ids: Sequence[str]
    actor: Required[str]
    reason: str
    event_id: str


async def publish_forget(
    connection: Connection, tenant: str, fields: ForgetFields, patience_seconds: float
) -> Published:
    """Raises InvalidMessage before anything is sent, EventNotAcknowledged when patience ends."""
    command = build_message(DeleteMemory, {"event_id": str(uuid4()), **fields})
    return await send(connection, pack("command", command, MEMORY_DELETE, tenant), patience_seconds)
