"""Fills a memory with lessons the way they come in life: published on the bus, written by the writer."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from lorebus import Lorebus, LorebusError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sqlalchemy.ext.asyncio import AsyncEngine

from cli.benchmarks.runs import Failure, build_failures, build_run
from cli.output import notes
from libs.common.schema import inbox

IN_FLIGHT_MAX = 16
POLL_SECONDS = 0.5
STALL_SECONDS_MAX = 60.0
TABLES = ("memory_items", "memory_vectors", "memory_terms", "scopes")


class NotFilled(LorebusError):
    """Some of the lessons were not written."""


class Filling:
    """Stores lessons and waits until each is written."""

    def __init__(self, memory: Lorebus, engine: AsyncEngine) -> None:
        self._memory = memory
        self._engine = engine
        self._slots = asyncio.Semaphore(IN_FLIGHT_MAX)

    async def fill(self, sizes: Mapping[str, int], seed: int) -> dict[str, list[Failure]]:
        """The failures by repository."""
        failures = {
            repository: list(build_failures(size, seed + place))
            for place, (repository, size) in enumerate(sizes.items())
        }
        runs = [
            build_run(repository, number, failure)
            for repository, of in failures.items()
            for number, failure in enumerate(of)
        ]
        await self._store(runs)
        await self._vacuum()
        return failures

    async def _store(self, runs: Sequence[dict[str, Any]]) -> None:
        columns = (TextColumn("storing lessons"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as progress:
            bar = progress.add_task("storing", total=len(runs))
            publishing = asyncio.gather(*(self._publish(run) for run in runs))
            written, still = 0, 0.0
            while written < len(runs):
                await asyncio.sleep(POLL_SECONDS)
                before, written = written, await self._count_written()
                still = 0.0 if written > before else still + POLL_SECONDS
                progress.update(bar, completed=written)
                if still > STALL_SECONDS_MAX:
                    raise NotFilled(f"only {written} of {len(runs)} lessons were written, and nothing moves any more")
            await publishing

    async def _publish(self, run: dict[str, Any]) -> None:
        async with self._slots:
            await self._memory.publish_run(run, patience_seconds=60)

    async def _count_written(self) -> int:
        query = sa.select(sa.func.count()).select_from(inbox).where(inbox.c.status == "written")
        async with self._engine.connect() as connection:
            return int(await connection.scalar(query) or 0)

    async def _vacuum(self) -> None:
        """What autovacuum does within a minute; the measurement must not depend on whether it has come by."""
        async with self._engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            for table in TABLES:
                await connection.execute(sa.text(f"vacuum (analyze) {table}"))
