"""Client of Lorebus, the agent memory on an event bus.

async with Lorebus() as memory:
    await memory.publish_run(run)
    reply = await memory.recall("what fails here", repository="owner/name")
"""

from lorebus.client import Lorebus
from lorebus.contracts.events import MemoryEvent
from lorebus.contracts.memory import SaveReply
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
from lorebus.sending import Published
from lorebus.tapping import Since, Tap, TappedEvent
from lorebus.transcripts import TranscriptFiles

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
    "SaveReply",
    "SearchReply",
    "Since",
    "Tap",
    "TappedEvent",
    "TranscriptFiles",
]
