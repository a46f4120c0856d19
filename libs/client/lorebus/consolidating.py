"""Asking for consolidation: like memories merged now, not at the next slot of the schedule."""

from typing import TypedDict
from uuid import uuid4

from lorebus.connection import Connection
from lorebus.contracts.consolidation import RequestConsolidation
from lorebus.contracts.envelope import build_message
from lorebus.contracts.subjects import CONSOLIDATION_REQUESTED, subject_for
from lorebus.sending import Parcel, Published, build_message_id, send


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
    body = request.model_dump_json(by_alias=True, exclude_none=True).encode()
    message_id = build_message_id(tenant, request.event_id, body)
    subject = subject_for(CONSOLIDATION_REQUESTED, tenant)
    return await send(connection, Parcel("request", subject, request.event_id, body, message_id), patience_seconds)
