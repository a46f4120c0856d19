"""`lorebus up` is killed at twenty random moments while runs are being published: nothing lost, nothing doubled."""

import asyncio
import json
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest
import sqlalchemy as sa
from conftest import ci_run
from lorebus import Lorebus, Published

from libs.common.database import create_engine, outages_as_store_unavailable
from libs.common.errors import StoreUnavailable
from libs.common.schema import inbox, memory_items, outbox

KILLS = 20
RUNS = 120
SEED = 20261130
PATIENCE_SECONDS = 60.0
"""Of the publisher: everything may have to start anew on a busy machine."""


@pytest.fixture
def data() -> Iterator[Path]:
    top = Path(tempfile.mkdtemp(prefix="lorebus-kill-"))
    top.chmod(0o711)
    yield top / "data"
    shutil.rmtree(top)


class Machine:
    """A `lorebus up` that is started again whenever it was killed."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> dict[str, str]:
        environment = os.environ | {"LOREBUS_LEASE_SECONDS": "1", "LOREBUS_EMBEDDER": "hashing"}
        command = [sys.executable, "-m", "cli", "up", "--data", str(self._data)]
        (self._data / "endpoints.json").unlink(missing_ok=True)
        self._process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL, env=environment
        )
        async with asyncio.timeout(60):
            line = (await self._process.stdout.readline()).decode()
        assert line.startswith("ready "), line
        return json.loads((self._data / "endpoints.json").read_text())

    async def kill(self, name: str) -> None:
        """SIGKILL to one process; what `lorebus up` supervises comes back by itself, itself is started again."""
        (await self._find_alive(name)).kill()
        if name == "lorebus":
            await self._process.wait()
            await self.start()

    async def _find_alive(self, name: str) -> psutil.Process:
        """The process, once it is back from the last kill."""
        async with asyncio.timeout(30):
            while True:
                up = psutil.Process(self._process.pid)
                family = [up] if name == "lorebus" else up.children()
                named = [process for process in family if name == "lorebus" or name in process.name()]
                if alive := [process for process in named if process.status() != psutil.STATUS_ZOMBIE]:
                    return alive[0]
                await asyncio.sleep(0.02)

    async def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            assert await self._process.wait() == 0


@asynccontextmanager
async def running_machine(data: Path) -> AsyncGenerator[tuple[Machine, dict[str, str]]]:
    machine = Machine(data)
    endpoints = await machine.start()
    yield machine, endpoints
    await machine.stop()


async def publish_all(memory: Lorebus, done: list[Published]) -> None:
    for number in range(RUNS):
        log = f"Error: step {number} of {uuid4().hex} failed\nmake: *** [target-{number}] Error {number % 9 + 1}\n"
        done.append(await memory.publish_run(ci_run(f"kill/r{number % 7}", log), patience_seconds=PATIENCE_SECONDS))


async def test_twenty_kills_at_random_moments_lose_and_double_nothing(data: Path) -> None:
    moments = random.Random(SEED)
    published: list[Published] = []
    async with running_machine(data) as (machine, endpoints):
        async with Lorebus(endpoints["nats"]) as memory:
            publishing = asyncio.create_task(publish_all(memory, published))
            for _ in range(KILLS):
                await asyncio.sleep(moments.uniform(0.05, 0.6))
                await machine.kill(moments.choice(["lorebus", "postgres", "nats-server", "postgres", "nats-server"]))
            await publishing
        engine = create_engine(endpoints["database"], "tests")
        acknowledged = {event.event_id for event in published}
        rows = await wait_until_terminal(engine, acknowledged)
        async with engine.connect() as connection:
            lessons = (await connection.execute(sa.select(memory_items.c.source_event_id))).scalars().all()
            unsent = await connection.scalar(sa.select(sa.func.count()).select_from(outbox))
        await engine.dispose()
    assert len(acknowledged) == RUNS
    assert {row["status"] for row in rows} == {"written"}
    assert sorted(lessons) == sorted(acknowledged), "one lesson each"
    assert unsent == 0


async def wait_until_terminal(engine: Any, event_ids: set[str]) -> list[dict[str, Any]]:
    query = sa.select(inbox.c.event_id, inbox.c.status, inbox.c.terminal_at).where(inbox.c.event_id.in_(event_ids))
    waiting = sa.select(sa.func.count()).select_from(outbox)
    async with asyncio.timeout(120):
        while True:
            rows, told = [], False
            with suppress(StoreUnavailable), outages_as_store_unavailable():  # it may just have been killed
                async with engine.connect() as connection:
                    rows = [dict(row) for row in (await connection.execute(query)).mappings()]
                    told = await connection.scalar(waiting) == 0
            if told and len(rows) == len(event_ids) and all(row["terminal_at"] for row in rows):
                return rows
            await asyncio.sleep(0.1)
