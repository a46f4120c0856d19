"""Facts about the patterns of the gate."""

from typing import ClassVar

from lorebus.contracts.facts.fact import MemoryEvent


class PatternQuarantined(MemoryEvent):
    kind: ClassVar[str] = "pattern_quarantined"

    pattern: str
    seconds: float
    """Of this term; each new offence doubles it."""


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
