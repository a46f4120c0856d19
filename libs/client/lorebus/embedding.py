"""Telling that the embedding model changed, and that the memories are to be embedded anew."""

from typing import Required, TypedDict
from uuid import uuid4

from lorebus.connection import Connection
from lorebus.contracts.embedding import EmbeddingChanged
from lorebus.contracts.envelope import build_message
from lorebus.contracts.subjects import EMBEDDING_CHANGED
from lorebus.sending import Published, pack, send


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
    return await send(connection, pack("event", changed, EMBEDDING_CHANGED, tenant), patience_seconds)
