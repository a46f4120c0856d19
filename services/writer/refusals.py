"""What the taps hear of a write that was refused: of runs and notes one kind of fact, of others another."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from lorebus.contracts.facts.channels import ChannelWriteRefused
from lorebus.contracts.facts.fact import WRITE_REFUSED, MemoryEvent
from lorebus.contracts.facts.writer import EntryRefused, LessonRefused, LessonSkipped, WriteScanUnavailable

from services.writer.channels.sources import ChannelSource
from services.writer.entries import EntrySource
from services.writer.rules import Draft, Source

_REFUSALS: dict[type[Source], type[EntryRefused | ChannelWriteRefused]] = {
    EntrySource: EntryRefused,
    ChannelSource: ChannelWriteRefused,
}
"""Those that one fact tells of, whatever the reason."""


def build_turned_away(source: Source, until: datetime) -> MemoryEvent:
    """Its origin is in quarantine."""
    if refused := _REFUSALS.get(type(source)):
        return refused(**source.about(), reason="origin_quarantined", until=until, security=WRITE_REFUSED)
    return LessonRefused(**source.about(), reason="origin_quarantined", until=until)


def build_matched(source: Source, draft: Draft, patterns: Sequence[str]) -> MemoryEvent:
    """The gate found a pattern: an attack."""
    if refused := _REFUSALS.get(type(source)):
        return refused(**source.about(), reason="matched", patterns=list(patterns), security=WRITE_REFUSED)
    return LessonRefused(**_about(source, draft), patterns=list(patterns))


def build_unscanned(source: Source, draft: Draft) -> MemoryEvent:
    """The scan was not whole: an outage."""
    if refused := _REFUSALS.get(type(source)):
        return refused(**source.about(), reason="incomplete")
    return WriteScanUnavailable(**_about(source, draft))


def build_forgotten(source: Source) -> MemoryEvent:
    """Somebody had it forgotten while it was in work."""
    if refused := _REFUSALS.get(type(source)):
        return refused(**source.about(), reason="forgotten")
    return LessonSkipped(**source.about(), reason="forgotten")


def _about(source: Source, draft: Draft) -> dict[str, Any]:
    return {**source.about(), "failure_type": draft.lesson.failure_type}
