"""What became of published events: taken from the facts that the memory tells of them."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, cast

from lorebus import Tap, TappedEvent

WORDS = {
    "lesson_written": ("lesson written", "green"),
    "lesson_held": ("held for review", "yellow"),
    "lesson_skipped": ("nothing to learn", "dim"),
    "lesson_refused": ("refused by the gate", "red"),
    "write_scan_unavailable": ("not screened, not written", "yellow"),
    "dead": ("dead letter", "bold red"),
}
"""How an event can end, in words, by the kind of fact that tells it."""

TERMINAL_KINDS = frozenset(WORDS)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one event."""

    event_id: str
    kind: str
    detail: str

    @classmethod
    def of(cls, fact: TappedEvent) -> "Outcome":
        return cls(str(fact.payload.get("event_id")), fact.kind, _detail(fact.payload))


async def wait_outcomes(tap: Tap, event_ids: Collection[str], timeout_seconds: float) -> dict[str, Outcome]:
    """The outcome of each event, or of those that ended in time."""
    outcomes: dict[str, Outcome] = {}
    try:
        async with asyncio.timeout(timeout_seconds):
            while open_ids := set(event_ids) - outcomes.keys():
                outcome = await _next_outcome(tap, open_ids)
                outcomes[outcome.event_id] = outcome
    except TimeoutError:
        return outcomes
    return outcomes


async def _next_outcome(tap: Tap, event_ids: Collection[str]) -> Outcome:
    """The next end of one of these events."""
    while True:
        fact = await anext(tap)
        if fact.kind in TERMINAL_KINDS and fact.payload.get("event_id") in event_ids:
            return Outcome.of(fact)


def _detail(payload: dict[str, Any]) -> str:
    patterns = payload.get("patterns")
    labels = ", ".join(map(str, cast("list[Any]", patterns))) if isinstance(patterns, list) else ""
    return str(payload.get("id") or labels or payload.get("reason"))
