"""Telling that the embedding model changed, and that the memories are to be embedded anew."""

from typing import Required, TypedDict
from uuid import uuid4

from lorebus.connection import Connection
from lorebus.contracts.embedding import EmbeddingChanged
from lorebus.contracts.envelope import build_message
from lorebus.contracts.subjects import EMBEDDING_CHANGED, subject_for
from lorebus.sending import Parcel, Published, build_message_id, send


class EmbeddingFields(TypedDict, total=False):
    """The fields of the event, as EmbeddingChanged declares them."""

    model: Required[str]
    dimensions: int | None
    reembed: bool
    actor: str | None
    event_id: str


async def publish_embedding(
    connection: Connection, tenant: str, fields: EmbeddingFields, patience_seconds: float
) -> Published:
    """Raises InvalidMessage before anything is sent, EventNotAcknowledged when patience ends."""
    changed = build_message(EmbeddingChanged, {"event_id": str(uuid4()), **fields})
    body = changed.model_dump_json(by_alias=True, exclude_none=True).encode()
    message_id = build_message_id(tenant, changed.event_id, body)
    subject = subject_for(EMBEDDING_CHANGED, tenant)
    return await send(connection, Parcel("event", subject, changed.event_id, body, message_id), patience_seconds)
