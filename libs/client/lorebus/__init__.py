"""Client of Lorebus, the agent memory on an event bus.

async with Lorebus() as memory:
    await memory.publish_run(run)
    reply = await memory.recall("what fails here", repository="owner/name")
"""

from lorebus.channels import ChatChannel
from lorebus.client import Lorebus
from lorebus.contracts.facts.fact import MemoryEvent
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
from lorebus.sessions.agentmemory import AgentMemoryProvider
from lorebus.sessions.facade import MemoryFacade
from lorebus.sessions.provider import MemoryProvider
from lorebus.sessions.registry import Caller
from lorebus.sessions.run import AgentRun, RunDetails
from lorebus.sessions.session import MemorySession
from lorebus.tapping import Since, Tap, TappedEvent
from lorebus.transcripts import TranscriptFiles

__all__ = [
    "AgentMemoryProvider",
    "AgentRun",
    "Caller",
    "ChatChannel",
    "EventNotAcknowledged",
    "ExplainReply",
    "ExplainedLesson",
    "FoundLesson",
    "InvalidMessage",
    "Lorebus",
    "LorebusError",
    "MemoryEvent",
    "MemoryFacade",
    "MemoryProvider",
    "MemorySession",
    "MemoryUnavailable",
    "Published",
    "RecallReply",
    "RecalledItem",
    "RequestRefused",
    "RunDetails",
    "RunFinished",
    "SaveReply",
    "SearchReply",
    "Since",
    "Tap",
    "TappedEvent",
    "TranscriptFiles",
]
