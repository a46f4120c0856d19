"""Facts that every service tells: messages that it could not handle."""

from typing import ClassVar

from lorebus.contracts.facts.fact import MemoryEvent


class EventConflict(MemoryEvent):
    """The same event id came with another payload; the first one stands."""

    kind: ClassVar[str] = "event_conflict"

    schema_name: str
    event_id: str


class EventDead(MemoryEvent):
    kind: ClassVar[str] = "dead"

    service: str
    schema_name: str
    event_id: str
    reason: str
    attempts: int
