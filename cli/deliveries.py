"""Carries run files to the bus, several at a time, and waits for what becomes of them."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from lorebus import Lorebus, LorebusError, Published, Tap
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from cli.outcomes import TERMINAL_KINDS, Outcome, wait_outcomes
from cli.output import notes
from cli.run_files import read_run_file
from cli.running import Target

IN_FLIGHT_MAX = 8


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of one file."""

    file: Path
    published: Published | None = None
    left_out: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Publishing:
    """One call of the command."""

    target: Target
    files: list[Path]
    wait_seconds: float | None

    async def deliver(self) -> tuple[list[Delivery], dict[str, Outcome] | None]:
        """What became of each file, and of each event where that was waited for."""
        async with AsyncExitStack() as stack:
            memory = await stack.enter_async_context(self.target.connect())
            tap: Tap | None = None
            if self.wait_seconds is not None:
                # From the start: a run that was published before told its end long ago.
                tap = await stack.enter_async_context(memory.events(TERMINAL_KINDS, since="start"))
            deliveries = await self._publish_all(memory)
            if tap is None or self.wait_seconds is None:
                return deliveries, None
            event_ids = [delivery.published.event_id for delivery in deliveries if delivery.published]
            with notes.status(f"waiting for the outcome of {len(event_ids)} runs"):
                return deliveries, await wait_outcomes(tap, event_ids, self.wait_seconds)

    async def _publish_all(self, memory: Lorebus) -> list[Delivery]:
        slots = asyncio.Semaphore(IN_FLIGHT_MAX)
        columns = (TextColumn("publishing"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as progress:
            bar = progress.add_task("publishing", total=len(self.files))
            return await asyncio.gather(
                *(self._publish(memory, file, slots, lambda: progress.advance(bar)) for file in self.files)
            )

    async def _publish(
        self, memory: Lorebus, file: Path, slots: asyncio.Semaphore, advance: Callable[[], None]
    ) -> Delivery:
        async with slots:
            try:
                read = await asyncio.to_thread(read_run_file, file)
                published = await memory.publish_run(read.run, transcripts=read.transcripts)
                return Delivery(file, published, (*read.left_out, *published.left_out))
            except LorebusError as error:
                return Delivery(file, error=str(error))
            finally:
                advance()
