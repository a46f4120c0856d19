"""Facts that the api tells: sessions."""

from typing import ClassVar, Literal

from lorebus.contracts.facts.fact import MemoryEvent


class SessionOpened(MemoryEvent):
    kind: ClassVar[str] = "session_opened"

    session_id: str
    project: str


class SessionClosed(MemoryEvent):
    kind: ClassVar[str] = "session_closed"

    session_id: str
    project: str
    reason: Literal["closed", "idle"]
    """`idle`: nobody closed it, and nothing happened in it for too long."""
