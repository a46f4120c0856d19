"""Every fact that is published today (contract 2.7)."""

from lorebus.contracts.facts.api import SessionClosed, SessionOpened
from lorebus.contracts.facts.channels import (
    ChannelAmbient,
    ChannelFlagged,
    ChannelIngested,
    ChannelWriteRefused,
    ChannelWritten,
)
from lorebus.contracts.facts.consolidator import (
    ChannelConsolidated,
    ConsolidationDispatched,
    ConsolidationRefused,
    ConsolidationScanUnavailable,
    LessonsConsolidated,
    MemoriesDeleted,
)
from lorebus.contracts.facts.consumption import EventConflict, EventDead
from lorebus.contracts.facts.fact import MemoryEvent
from lorebus.contracts.facts.gate import PatternQuarantined, PatternsChanged, PatternsRejected
from lorebus.contracts.facts.recall import LessonsRetrieved, RecallDropped
from lorebus.contracts.facts.reembedder import (
    ReembedDone,
    ReembedFailed,
    ReembedProgress,
    ReembedRefused,
    ReembedRolledBack,
    ReembedStarted,
)
from lorebus.contracts.facts.writer import (
    AttemptHistoryUnavailable,
    EntryRefused,
    EntryWritten,
    LessonHeld,
    LessonRefused,
    LessonReleased,
    LessonSkipped,
    LessonWritten,
    OriginQuarantined,
    Superseded,
    TranscriptDigest,
    TranscriptDigestDropped,
    TranscriptDigestUnavailable,
    WriteScanUnavailable,
)

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
        MemoriesDeleted,
        ConsolidationDispatched,
        LessonsConsolidated,
        ChannelConsolidated,
        ConsolidationRefused,
        ConsolidationScanUnavailable,
        ReembedStarted,
        ReembedProgress,
        ReembedDone,
        ReembedFailed,
        ReembedRefused,
        ReembedRolledBack,
        LessonsRetrieved,
        RecallDropped,
        PatternQuarantined,
        PatternsChanged,
        PatternsRejected,
        EntryWritten,
        EntryRefused,
        ChannelWritten,
        ChannelWriteRefused,
        ChannelIngested,
        ChannelAmbient,
        ChannelFlagged,
        SessionOpened,
        SessionClosed,
        EventConflict,
        EventDead,
    )
}
"""By kind, the last part of the subject."""
