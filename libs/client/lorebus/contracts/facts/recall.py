"""Facts that recall tells: what it gave, and what it withheld."""

from typing import ClassVar, Literal

from lorebus.contracts.envelope import Message
from lorebus.contracts.facts.fact import RECALL_DROPPED, MemoryEvent


class RetrievedLesson(Message):
    id: str
    failure_type: str | None = None


class LessonsRetrieved(MemoryEvent):
    kind: ClassVar[str] = "lessons_retrieved"

    repository: str
    run_id: str | None = None
    agent: str | None = None
    count: int
    lessons: list[RetrievedLesson]


class RecallDropped(MemoryEvent):
    kind: ClassVar[str] = "recall_dropped"

    ids: list[str]
    count: int
    patterns: list[str]
    security: Literal["MEMORY_RECALL_DROPPED"] = RECALL_DROPPED
