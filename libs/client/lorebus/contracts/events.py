"""Facts for taps: `memory.event.<kind>` (contract 2.7).

They carry ids, counts, reasons and pattern labels; never memory text, evidence or a secret.
"""

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import Field

from lorebus.contracts.envelope import Message

WRITE_REFUSED = "MEMORY_WRITE_REFUSED"
RECALL_DROPPED = "MEMORY_RECALL_DROPPED"


class MemoryEvent(Message):
    """Base of all facts. `kind` is the last part of the subject."""

    kind: ClassVar[str]

    tenant: str = "default"
    at: datetime | None = None


class RunEvent(MemoryEvent):
    """A fact about what became of one `run.finished`, or of one note."""

    event_id: str
    run_id: str | None = None
    repository: str
    written_by: str | None = None
    """The writer of a note, or of the lesson."""


class LessonWritten(RunEvent):
    kind: ClassVar[str] = "lesson_written"

    id: str
    failure_type: str | None = None
    superseded: list[str] = Field(default_factory=list[str])


class LessonSkipped(RunEvent):
    kind: ClassVar[str] = "lesson_skipped"

    reason: str


class LessonRefused(RunEvent):
    kind: ClassVar[str] = "lesson_refused"

    failure_type: str | None = None
    patterns: list[str]
    security: Literal["MEMORY_WRITE_REFUSED"] = WRITE_REFUSED


class WriteScanUnavailable(RunEvent):
    kind: ClassVar[str] = "write_scan_unavailable"

    failure_type: str | None = None
    reason: Literal["incomplete"] = "incomplete"


class AttemptHistoryUnavailable(RunEvent):
    """The attempts could not be read; the lesson is written from what is left."""

    kind: ClassVar[str] = "attempt_history_unavailable"

    reason: str


class TranscriptDigest(RunEvent):
    """What the transcripts gave: how many entries of each kind, and how many the gate withheld."""

    kind: ClassVar[str] = "transcript_digest"

    transcript_ids: list[str]
    failed_tools: int
    failed_commands: int
    churned_files: int
    final_notes: int
    dropped: int


class TranscriptDigestUnavailable(RunEvent):
    kind: ClassVar[str] = "transcript_digest_unavailable"

    reason: str


class TranscriptDigestDropped(RunEvent):
    """Entries of transcripts in which the gate found a pattern."""

    kind: ClassVar[str] = "transcript_digest_dropped"

    transcript_ids: list[str]
    count: int
    patterns: list[str]
    security: Literal["MEMORY_RECALL_DROPPED"] = RECALL_DROPPED


class Superseded(MemoryEvent):
    kind: ClassVar[str] = "superseded"

    repository: str
    ids: list[str]
    superseded_by: str


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


class PatternQuarantined(MemoryEvent):
    kind: ClassVar[str] = "pattern_quarantined"

    pattern: str
    seconds: float


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


EVENTS: dict[str, type[MemoryEvent]] = {
    event.kind: event
    for event in (
        LessonWritten,
        LessonSkipped,
        LessonRefused,
        WriteScanUnavailable,
        AttemptHistoryUnavailable,
        TranscriptDigest,
        TranscriptDigestUnavailable,
        TranscriptDigestDropped,
        Superseded,
        LessonsRetrieved,
        RecallDropped,
        PatternQuarantined,
        EventConflict,
        EventDead,
    )
}
"""Every fact that is published today, by kind."""
