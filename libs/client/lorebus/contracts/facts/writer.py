"""Facts that the writer tells: what became of runs, notes and entries."""

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import Field

from lorebus.contracts.facts.fact import RECALL_DROPPED, WRITE_REFUSED, MemoryEvent


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


class EntryEvent(MemoryEvent):
    """A fact about what became of one entry."""

    event_id: str
    project: str
    session_id: str | None = None


class EntryWritten(EntryEvent):
    kind: ClassVar[str] = "entry_written"

    id: str
    held: bool = False
    """It is not recalled until an administrator has released it."""


class EntryRefused(EntryEvent):
    kind: ClassVar[str] = "entry_refused"

    reason: Literal["matched", "incomplete", "origin_quarantined", "forgotten"]
    patterns: list[str] = Field(default_factory=list[str])
    until: datetime | None = None
    """When the origin's quarantine ends."""
    security: Literal["MEMORY_WRITE_REFUSED"] | None = None
    """None: the scan was not whole, which is an outage."""
