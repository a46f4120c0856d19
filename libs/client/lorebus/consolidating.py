"""Asking for consolidation: like memories merged now, not at the next slot of the schedule."""

from typing import TypedDict
from uuid import uuid4

from lorebus.connection import Connection
from lorebus.contracts.consolidation import RequestConsolidation
from lorebus.contracts.envelope import build_message
from lorebus.contracts.subjects import CONSOLIDATION_REQUESTED
from lorebus.sending import Published, pack, send


class ConsolidationFields(TypedDict, total=False):
    """The fields of a request, as RequestConsolidation declares them."""

    repository: str | None
    channel: str | None
    similarity_min: float | None
    cluster_size_min: int | None
    actor: str | None
    event_id: str


async def publish_consolidation(
    connection: Connection, tenant: str, fields: ConsolidationFields, patience_seconds: float
) -> Published:
    """Raises InvalidMessage before anything is sent, EventNotAcknowledged when patience ends."""
    request = build_message(RequestConsolidation, {"event_id": str(uuid4()), **fields})
    return await send(connection, pack("request", request, CONSOLIDATION_REQUESTED, tenant), patience_seconds)
