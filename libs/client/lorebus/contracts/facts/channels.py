"""Facts about chat channels: what became of turns, messages and ambient passes. `channel` is the channel's key."""

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import Field

from lorebus.contracts.facts.fact import MemoryEvent


class ChannelEvent(MemoryEvent):
    event_id: str
    channel: str


class ChannelWriteEvent(ChannelEvent):
    """A fact about one memory of a channel."""

    source: Literal["turn", "passive-ingest"]


class ChannelWritten(ChannelWriteEvent):
    kind: ClassVar[str] = "channel_written"

    id: str
    held: bool = False
    """It is not recalled until an administrator has released it."""
    superseded: list[str] = Field(default_factory=list[str])
    superseded_by: str | None = None
    """It is older than one that says the same."""


class ChannelWriteRefused(ChannelWriteEvent):
    kind: ClassVar[str] = "channel_write_refused"

    reason: Literal["matched", "incomplete", "origin_quarantined", "forgotten", "over_budget"]
    patterns: list[str] = Field(default_factory=list[str])
    until: datetime | None = None
    """When the origin's quarantine ends."""
    security: Literal["MEMORY_WRITE_REFUSED"] | None = None
    """None: no attack."""


class ChannelIngested(ChannelEvent):
    """What a page of messages came to."""

    kind: ClassVar[str] = "channel_ingested"

    messages_read: int
    facts_extracted: int
    facts_written: int
    duplicates: int = 0
    """Facts that the channel knew already."""
    written_by: Literal["model", "rules"] | None = None
    """What found the facts; None where nothing was read."""


FlagReason = Literal["disabled", "cooldown", "over-budget", "no-interest", "no-signals", "skip", "posted", "error"]
"""`no-interest`: the channel has no notes of its own to compare with. `skip`: the model saw nothing of interest."""


class ChannelFlagged(ChannelEvent):
    """What a look through the organization's notes came to; `posted` names those that the channel should hear of."""

    kind: ClassVar[str] = "channel_flagged"

    reason: FlagReason
    candidates: int = 0
    ids: list[str] = Field(default_factory=list[str])
    """`channel.flagged` gives their words."""


class ChannelAmbient(ChannelEvent):
    """What an ambient pass did: each part by itself."""

    kind: ClassVar[str] = "channel_ambient"

    digest: list[str]
    """The newest of its memories; a recall of `*` gives their words."""
    consolidation_event_id: str | None = None
    ingest_event_id: str | None = None
