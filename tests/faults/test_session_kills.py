"""Many hosts save in sessions while the HTTP service and the writer are killed: no host fails, nothing it was told is
stored is lost.

The full size: LOREBUS_SESSIONS=1000 LOREBUS_SESSION_HOSTS=50.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import sqlalchemy as sa
from conftest import Installation, run_services
from lorebus.sessions.agentmemory import AgentMemoryProvider
from lorebus.sessions.session import MemorySession

from libs.common.bus.relay import Relay
from libs.common.schema import entries, memory_items, sessions
from libs.common.settings import CommonSettings
from services.api.store import ApiStore
from services.api.sweeping import Sweeping
from services.gate.app import PROGRAM as GATE

SESSIONS = int(os.environ.get("LOREBUS_SESSIONS", "120"))
HOSTS = int(os.environ.get("LOREBUS_SESSION_HOSTS", "20"))
KILLS = 2
PATIENCE_SECONDS = 300
PROJECT = "killed"

API = ("-m", "services.api")
HASTY_API = (str(Path(__file__).with_name("hasty_api.py")),)


class Backend:
    """The HTTP service and the writer, each a process of its own that can be killed and comes back."""

    def __init__(self, settings: CommonSettings, port: int, api: tuple[str, ...]) -> None:
        self.provider = AgentMemoryProvider({"baseUrl": f"http://127.0.0.1:{port}", "projectId": PROJECT})
        self.is_back = asyncio.Event()
        self._commands = (("-m", "services.writer"), api)
        self._processes: list[asyncio.subprocess.Process] = []
        self._environment = os.environ | {
            "LOREBUS_DATABASE_URL": settings.database_url,
            "LOREBUS_NATS_URL": settings.nats_url,
            "LOREBUS_LEASE_SECONDS": str(settings.lease_seconds),
            "LOREBUS_EMBEDDER": "hashing",
            "LOREBUS_API_PORT": str(port),
        }

    async def start(self) -> None:
        quiet = asyncio.subprocess.DEVNULL
        for command in self._commands:
            process = await asyncio.create_subprocess_exec(
                sys.executable, *command, env=self._environment, stdout=quiet, stderr=quiet
            )
            self._processes.append(process)
        async with asyncio.timeout(60):
            while not (await self.provider.check_health()).is_connected:
                assert [process.returncode for process in self._processes] == [None, None], "one of them ended"
                await asyncio.sleep(0.05)
        self.is_back.set()

    async def kill(self) -> None:
        self.is_back.clear()
        for process in self._processes:
            process.kill()
        assert {await process.wait() for process in self._processes} == {-signal.SIGKILL}
        self._processes.clear()


@dataclass
class Told:
    """What the hosts were told: by the ids of entries their texts, and the ids of sessions."""

    saved: dict[str, str] = field(default_factory=dict[str, str])
    opened: list[str] = field(default_factory=list[str])
    saved_before_kills: list[int] = field(default_factory=list[int])


async def run_host(number: int, backend: Backend, told: Told) -> None:
    """A host's sessions, one after the other. What could not be saved it gives up, and waits until all is well."""
    for turn in range(SESSIONS // HOSTS):
        text = f"Host {number} learned in its session {turn} how to restart the crane."
        async with MemorySession(backend.provider) as session:
            record = await session.save(text)
        if session.id:
            told.opened.append(session.id)
        if record:
            told.saved[record.id] = text
        else:
            await backend.is_back.wait()


async def run_hosts(backend: Backend, told: Told, kills: int) -> None:
    """All hosts at once, and the kills: each when a further share was saved."""
    await backend.start()
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as hosts:
        for number in range(HOSTS):
            hosts.create_task(run_host(number, backend, told))
        for kill in range(kills):
            while len(told.saved) < SESSIONS * (kill + 1) // (kills + 2):  # noqa: ASYNC110 - hosts tell nobody
                await asyncio.sleep(0.005)
            await backend.kill()
            told.saved_before_kills.append(len(told.saved))
            await backend.start()


@asynccontextmanager
async def hosts_done(
    settings: CommonSettings, port: int, api: tuple[str, ...] = API, kills: int = KILLS
) -> AsyncGenerator[tuple[Installation, Told]]:
    backend, told = Backend(settings.model_copy(update={"embedder": "hashing"}), port, api), Told()
    async with run_services(settings, GATE) as installation:
        try:
            await run_hosts(backend, told, kills)
            yield installation, told
        finally:
            await backend.kill()


async def stored_texts(installation: Installation) -> dict[str, str]:
    query = sa.select(memory_items.c.id, memory_items.c.summary).join(entries, entries.c.item_id == memory_items.c.id)
    return {str(row["id"]): row["summary"] for row in await installation.rows(query)}


async def test_what_hosts_were_told_is_stored_outlives_two_kills_and_no_host_fails(
    apart: CommonSettings, free_port: int
) -> None:
    async with hosts_done(apart, free_port) as (installation, told):
        stored = await stored_texts(installation)
        assert {id_: stored.get(id_) for id_ in told.saved} == told.saved
        assert len(set(stored.values())) == len(stored), "nothing is doubled"
        assert len(told.saved_before_kills) == KILLS
        assert len(told.saved) > told.saved_before_kills[-1], "hosts went on behind the last kill"
        kept = await installation.rows(sa.select(sessions.c.id))
        assert set(told.opened) <= {row["id"] for row in kept}
        relay = Relay(installation.engine, installation.memory.connection.client)
        await Sweeping(ApiStore(installation.engine), relay, idle_seconds=0.01, every_seconds=60).sweep()
        assert await installation.rows(sa.select(sessions.c.id).where(sessions.c.ended_at.is_(None))) == []


async def test_the_mutant_that_answers_before_it_has_stored_loses_what_hosts_were_told(
    apart: CommonSettings, free_port: int
) -> None:
    async with hosts_done(apart, free_port, HASTY_API, kills=1) as (installation, told):
        stored = await stored_texts(installation)
        assert set(told.saved) - set(stored) != set()
