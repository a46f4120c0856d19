"""Client of Lorebus, the agent memory on an event bus.

async with Lorebus() as memory:
    await memory.publish_run(run)
    reply = await memory.recall("what fails here", repository="owner/name")
"""

from lorebus.client import Lorebus
from lorebus.contracts.events import MemoryEvent
from lorebus.contracts.recall import (
    ExplainedLesson,
    ExplainReply,
    FoundLesson,
    RecalledItem,
    RecallReply,
    SearchReply,
)
from lorebus.contracts.runs import RunFinished
from lorebus.errors import (
    EventNotAcknowledged,
    InvalidMessage,
    LorebusError,
    MemoryUnavailable,
    RequestRefused,
)
from lorebus.publishing import Published
from lorebus.tapping import Since, Tap, TappedEvent

__all__ = [
    "EventNotAcknowledged",
    "ExplainReply",
    "ExplainedLesson",
    "FoundLesson",
    "InvalidMessage",
    "Lorebus",
    "LorebusError",
    "MemoryEvent",
    "MemoryUnavailable",
    "Published",
    "RecallReply",
    "RecalledItem",
    "RequestRefused",
    "RunFinished",
    "SearchReply",
    "Since",
    "Tap",
    "TappedEvent",
]
