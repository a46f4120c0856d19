"""Facts that the consolidator tells: what it merged, and what it forgot."""

from datetime import date
from typing import ClassVar, Literal

from pydantic import Field

from lorebus.contracts.facts.fact import WRITE_REFUSED, MemoryEvent


class ConsolidationEvent(MemoryEvent):
    """A fact about one `consolidation.requested`."""

    event_id: str
    repository: str | None = None
    channel: str | None = None


class ConsolidationDispatched(ConsolidationEvent):
    """A request for every repository became one job for each, with these event ids."""

    kind: ClassVar[str] = "consolidation_dispatched"

    jobs: list[str]


class LessonsConsolidated(ConsolidationEvent):
    """What a request came to; all zeros where nothing was alike."""

    kind: ClassVar[str] = "lessons_consolidated"

    clusters_found: int
    clusters_consolidated: int
    lessons_consolidated: int
    """Sources that were merged away."""
    lessons_created: int
    left: dict[str, int] = Field(default_factory=dict[str, int])
    """How many clusters were left as they are, by reason."""
    created: list[str] = Field(default_factory=list[str])


class ChannelConsolidated(ConsolidationEvent):
    """The same of a channel's memory."""

    kind: ClassVar[str] = "channel_consolidated"

    clusters_found: int
    clusters_consolidated: int
    memories_consolidated: int
    memories_created: int
    left: dict[str, int] = Field(default_factory=dict[str, int])
    created: list[str] = Field(default_factory=list[str])


class ConsolidationRefused(ConsolidationEvent):
    """The gate found a pattern in a merged text; its sources are left as they are."""

    kind: ClassVar[str] = "consolidation_refused"

    source_ids: list[str]
    patterns: list[str]
    security: Literal["MEMORY_WRITE_REFUSED"] = WRITE_REFUSED


class ConsolidationScanUnavailable(ConsolidationEvent):
    """A merged text could not be screened: the scan was not whole, or the model gave no text that could be read."""

    kind: ClassVar[str] = "consolidation_scan_unavailable"

    source_ids: list[str]
    reason: Literal["incomplete", "unreadable_answer"]


class MemoriesDeleted(MemoryEvent):
    """What one `memory.delete` did. Told in parts where the ids are too many for one message."""

    kind: ClassVar[str] = "deleted"

    event_id: str
    deleted: list[str]
    restored: list[str]
    """Hidden behind a deleted memory until now; one that something else still hides is listed as well."""
    physical_by: date
    """Until then their bytes may lie in files, logs and back-ups of the database; nobody is shown them."""
    unattributed: int | None = None
    """Of a person: how many channel memories name nobody, so that no erasure by person finds them."""
    part: int = 1
    parts: int = 1
