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
    watched: list[str] = Field(default_factory=list[str])
    """Labels of patterns that only watch: they lowered the lesson's tier."""


class LessonHeld(RunEvent):
    """Stored, and recalled only once an administrator has released it."""

    kind: ClassVar[str] = "lesson_held"

    id: str
    failure_type: str | None = None
    patterns: list[str]


class LessonReleased(MemoryEvent):
    """An administrator let a held lesson be recalled."""

    kind: ClassVar[str] = "lesson_released"

    repository: str
    id: str
    superseded: list[str] = Field(default_factory=list[str])


class LessonSkipped(RunEvent):
    kind: ClassVar[str] = "lesson_skipped"

    reason: str


class LessonRefused(RunEvent):
    kind: ClassVar[str] = "lesson_refused"

    failure_type: str | None = None
    reason: Literal["matched", "origin_quarantined"] = "matched"
    patterns: list[str] = Field(default_factory=list[str])
    until: datetime | None = None
    """When the origin's quarantine ends: published again then under a new id, the event is read."""
    security: Literal["MEMORY_WRITE_REFUSED"] = WRITE_REFUSED


class OriginQuarantined(MemoryEvent):
    """So many writes of one origin were refused that nothing of it is taken for a while."""

    kind: ClassVar[str] = "origin_quarantined"

    repository: str
    written_by: str | None = None
    """The writer of the notes; None: the repository's runs."""
    refusals: int
    until: datetime
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
    """At most: the first time it is shorter."""


class PatternsChanged(MemoryEvent):
    """Another pattern set is stored: an administrator's change, or the built-in patterns of another version."""

    kind: ClassVar[str] = "patterns_changed"

    pattern_set: str
    count: int


class PatternsRejected(MemoryEvent):
    """A stored pattern set did not pass its trial: the gate goes on with the last good one, or with none."""

    kind: ClassVar[str] = "patterns_rejected"

    pattern_set: str
    patterns: list[str]
    """Labels of the patterns at fault."""
    faults: int


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
        LessonHeld,
        LessonReleased,
        LessonSkipped,
        LessonRefused,
        OriginQuarantined,
        WriteScanUnavailable,
        AttemptHistoryUnavailable,
        TranscriptDigest,
        TranscriptDigestUnavailable,
        TranscriptDigestDropped,
        Superseded,
        LessonsRetrieved,
        RecallDropped,
        PatternQuarantined,
        PatternsChanged,
        PatternsRejected,
        EventConflict,
        EventDead,
    )
}
"""Every fact that is published today, by kind."""
