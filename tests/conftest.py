"""What all tests share: the real servers, one installation for the session, and helpers to ask and to look.

Tests are kept apart by tenant and repository names of their own; nothing is cleaned in between.
"""

import asyncio
import json
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from lorebus import Lorebus, RecallReply
from sqlalchemy.ext.asyncio import AsyncEngine

from libs.common.database import create_engine
from libs.common.inbox import Event
from libs.common.logging import configure_logging
from libs.common.provision import provision, provision_bus
from libs.common.run import AnyProgram, running
from libs.common.schema import inbox
from libs.common.settings import CommonSettings
from libs.embedded.nats_server import EmbeddedNats
from libs.embedded.stack import EmbeddedStack
from services.gate.app import PROGRAM as GATE
from services.gate.patterns import load_builtin_patterns
from services.gate.scan import Scanner
from services.recall.app import PROGRAM as RECALL
from services.writer.app import PROGRAM as WRITER

LEASE_SECONDS = 2.0
LOG_FILE = "lorebus.log"


def pytest_configure() -> None:
    """A run that was started in the background ignores Ctrl-C, and would hand that on to the programs under test."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Rich takes the width once, when the first command is imported: no table may wrap what a test looks for.
    os.environ["COLUMNS"] = "300"


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compiles the built-in patterns once, not in each service that a test starts: seconds, on a new machine alone."""
    if not hasattr(session.config, "workerinput"):
        Scanner(load_builtin_patterns()).prepare()


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real data that is not part of the repository."""
    folder = Path(os.environ.get("LOREBUS_SHARED", Path(__file__).parents[2] / "shared"))
    if not folder.is_dir():
        pytest.skip(f"the shared data is not at {folder}; set LOREBUS_SHARED")
    return folder


@pytest.fixture(scope="session")
def open_folder() -> Iterator[Path]:
    """A folder that the servers' user can reach; pytest's own temporary folders are closed to it."""
    folder = Path(tempfile.mkdtemp(prefix="lorebus-session-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
async def servers(open_folder: Path) -> AsyncIterator[CommonSettings]:
    """Postgres and nats-server, prepared, with no service running."""
    async with EmbeddedStack(open_folder / "stack", durable=False) as stack:
        configure_logging("DEBUG", "json", open_folder / LOG_FILE)
        settings = CommonSettings(database_url=stack.database_url, nats_url=stack.nats_url, lease_seconds=LEASE_SECONDS)
        await provision(settings)
        yield settings


@dataclass(frozen=True)
class Installation:
    """Running services, a client of theirs and their database."""

    settings: CommonSettings
    memory: Lorebus
    engine: AsyncEngine

    async def publish(self, run: dict[str, Any], memory: Lorebus | None = None) -> Event:
        """Publishes a run and waits for its end."""
        published = await (memory or self.memory).publish_run(run)
        return await self.end_of(published.event_id)

    async def end_of(self, event_id: str, seconds: float = 60) -> Event:
        """The event's inbox row, once it is terminal."""
        query = sa.select(*(inbox.c[name] for name in Event.__dataclass_fields__)).where(
            inbox.c.event_id == event_id, inbox.c.terminal_at.is_not(None)
        )
        return Event(**(await self.until(query, seconds))[0])

    async def rows(self, query: sa.Select[Any] | str) -> list[dict[str, Any]]:
        statement = sa.text(query) if isinstance(query, str) else query
        async with self.engine.connect() as connection:
            return [dict(row) for row in (await connection.execute(statement)).mappings()]

    async def until(self, query: sa.Select[Any], seconds: float = 30) -> list[dict[str, Any]]:
        """The rows, once there are any."""
        async with asyncio.timeout(seconds):
            while not (rows := await self.rows(query)):  # noqa: ASYNC110 - rows tell nobody that they came
                await asyncio.sleep(0.02)
        return rows

    async def recall(self, repository: str, query: str, **options: Any) -> RecallReply:
        return await self.memory.recall(query, repository=repository, deadline_seconds=5, **options)

    async def facts(self, kind: str, seconds: float = 30, **wanted: object) -> dict[str, Any]:
        """The first fact of a kind whose payload holds these values."""
        async with asyncio.timeout(seconds), self.memory.events([kind], since="start") as tap:
            async for fact in tap:
                if wanted.items() <= fact.payload.items():
                    return fact.payload
        raise AssertionError("the tap ended")


@asynccontextmanager
async def run_services(settings: CommonSettings, *programs: AnyProgram) -> AsyncGenerator[Installation]:
    engine = create_engine(settings.database_url, "tests")
    async with running(programs, settings) as failed, Lorebus(settings.nats_url) as memory:
        assert await memory.wait_connected(5)
        yield Installation(settings, memory, engine)
        assert not failed.done(), failed
    await engine.dispose()


@pytest.fixture(scope="session")
async def installation(servers: CommonSettings) -> AsyncIterator[Installation]:
    """Gate, writer and recall."""
    async with run_services(servers, GATE, WRITER, RECALL) as running_installation:
        yield running_installation


@pytest.fixture
async def other_bus(servers: CommonSettings, open_folder: Path) -> AsyncIterator[CommonSettings]:
    """A bus of its own beside the same database: the test says which services are on it."""
    server = EmbeddedNats(open_folder / f"bus-{uuid4().hex[:8]}", durable=False)
    settings = servers.model_copy(update={"nats_url": await server.start()})
    await provision_bus(settings)
    yield settings
    await server.stop()


@pytest.fixture
async def empty_database(servers: CommonSettings) -> AsyncIterator[str]:
    """The address of a database of its own, without a schema."""
    name = f"test_{uuid4().hex[:8]}"
    admin = create_engine(servers.database_url, "tests")
    async with admin.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(sa.text(f"create database {name}"))
        yield servers.database_url.rsplit("/", 1)[0] + f"/{name}"
        await connection.execute(sa.text(f"drop database {name} with (force)"))
    await admin.dispose()


@pytest.fixture
async def apart(other_bus: CommonSettings, empty_database: str) -> CommonSettings:
    """A bus and a database of its own: no service of the session moves its facts or takes its events."""
    settings = other_bus.model_copy(update={"database_url": empty_database})
    await provision(settings)
    return settings


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def repository() -> str:
    """A repository that no other test uses."""
    return f"tests/{uuid4().hex[:12]}"


def ci_run(repository: str, log: str, **fields: Any) -> dict[str, Any]:
    """A run that ended because CI failed with this log."""
    return {
        "run_id": str(uuid4()),
        "repository": repository,
        "outcome": "CI_FAILED",
        "attempts": [{"kind": "ci", "seq": 1, "log_tail": log}],
        **fields,
    }


async def dump_database(engine: AsyncEngine) -> str:
    """Every value of every table as text: what must not be there can be looked for."""
    async with engine.connect() as connection:
        tables = (
            await connection.execute(sa.text("select relname from pg_stat_user_tables order by relname"))
        ).scalars()
        return "\n".join(
            [
                json.dumps(
                    [
                        list(map(str, row))
                        for row in await connection.execute(sa.text(f'select t::text from "{name}" t'))
                    ]
                )
                for name in tables
            ]
        )
