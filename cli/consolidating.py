"""Asks for consolidation, and follows what becomes of it: one job, or one for each repository."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from lorebus import Tap, TappedEvent
from lorebus.consolidating import ConsolidationFields
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from cli.output import notes
from cli.running import Target

KINDS = frozenset({"consolidation_dispatched", "lessons_consolidated", "channel_consolidated", "dead"})


@dataclass(frozen=True, slots=True)
class End:
    """What one job came to."""

    place: str
    found: int
    consolidated: int
    sources: int
    created: int
    left: Mapping[str, int]

    @classmethod
    def of(cls, payload: Mapping[str, Any]) -> "End":
        word = "lessons" if "lessons_created" in payload else "memories"
        return cls(
            place=str(payload.get("repository") or payload.get("channel")),
            found=payload["clusters_found"],
            consolidated=payload["clusters_consolidated"],
            sources=payload[f"{word}_consolidated"],
            created=payload[f"{word}_created"],
            left=payload.get("left") or {},
        )

    def row(self) -> tuple[object, ...]:
        left = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in self.left.items())
        return self.place, self.found, self.consolidated, self.sources, self.created, left


@dataclass(slots=True)
class Consolidation:
    """What became of a request: ids of jobs that are open or dead, and the ends of the others."""

    event_id: str
    is_awaited: bool = True
    open: set[str] = field(default_factory=set[str])
    done: list[End] = field(default_factory=list[End])
    dead: list[str] = field(default_factory=list[str])

    @property
    def total(self) -> int:
        return len(self.open) + self.ended

    @property
    def ended(self) -> int:
        return len(self.done) + len(self.dead)

    @property
    def is_failed(self) -> bool:
        return bool(self.open or self.dead)

    def take(self, fact: TappedEvent) -> None:
        event_id = str(fact.payload.get("event_id"))
        if event_id not in self.open:
            return
        self.open.discard(event_id)
        if fact.kind == "consolidation_dispatched":
            self.open |= {str(job) for job in cast("list[Any]", fact.payload["jobs"])}
        elif fact.kind == "dead":
            self.dead.append(event_id)
        else:
            self.done.append(End.of(fact.payload))


def render_json(ends: Consolidation) -> dict[str, Any]:
    names = ("place", "found", "consolidated", "sources", "created", "left")
    done = [{name: getattr(end, name) for name in names} for end in ends.done]
    return {"event_id": ends.event_id, "done": done, "dead": ends.dead, "open": sorted(ends.open)}


@dataclass(frozen=True, slots=True)
class Following:
    """One call of the command. `wait_seconds`: 0 only hands the request over."""

    target: Target
    request: ConsolidationFields
    wait_seconds: float

    async def follow(self) -> Consolidation:
        async with self.target.connect() as memory, memory.events(KINDS) as tap:
            published = await memory.request_consolidation(**self.request)
            ends = Consolidation(published.event_id, is_awaited=self.wait_seconds > 0)
            if ends.is_awaited:
                ends.open.add(ends.event_id)
                await self._wait(tap, ends)
        return ends

    async def _wait(self, tap: Tap, ends: Consolidation) -> None:
        columns = (TextColumn("consolidating"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as progress:
            bar = progress.add_task("consolidating", total=ends.total)
            with suppress(TimeoutError):
                async with asyncio.timeout(self.wait_seconds):
                    await _take_all(tap, ends, lambda: progress.update(bar, total=ends.total, completed=ends.ended))


async def _take_all(tap: Tap, ends: Consolidation, show: Callable[[], None]) -> None:
    while ends.open:
        ends.take(await anext(tap))
        show()
