"""A nats-server with streams of its own and no service: tests of the client play the services themselves.

A test module takes its fixtures by name: `shared_bus, bus, memory = FIXTURES`.
"""

import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import nats
import pytest
from lorebus import Lorebus
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import StreamConfig

from libs.embedded.nats_server import EmbeddedNats

NOBODY = "nats://127.0.0.1:1"
RUN = {"run_id": "r1", "repository": "acme/shop", "outcome": "CI_FAILED"}
WRITTEN = {"event_id": "e1", "run_id": "r1", "repository": "acme/shop", "id": "l1"}

Respond = Callable[[Msg], Awaitable[None]]


@dataclass
class Bus:
    server: EmbeddedNats
    url: str
    client: Client

    async def tell(self, kind: str, payload: object = WRITTEN, tenant: str = "") -> int:
        subject = f"memory.event.{kind}" + (f".{tenant}" if tenant else "")
        ack = await self.client.jetstream().publish(subject, json.dumps(payload).encode())
        return ack.seq

    @asynccontextmanager
    async def answering(self, subject: str, respond: Respond) -> AsyncIterator[None]:
        subscription = await self.client.subscribe(subject, queue="recall", cb=respond)
        await self.client.flush()
        yield
        await subscription.unsubscribe()


@asynccontextmanager
async def running_bus() -> AsyncIterator[Bus]:
    top = make_folder()
    server = EmbeddedNats(top / "data", durable=False)
    url = await server.start()
    client = await nats.connect(url, max_reconnect_attempts=-1, reconnect_time_wait=0.1, error_cb=ignore)
    yield Bus(server, url, client)
    await client.close()
    await server.stop()
    shutil.rmtree(top)


def make_folder() -> Path:
    """A folder that the server's user can reach; pytest's own are closed to it."""
    top = Path(tempfile.mkdtemp(prefix="lorebus-client-"))
    top.chmod(0o711)
    return top


async def ignore(_error: Exception) -> None:
    """The tests take the server away on purpose."""


STREAMS = {
    "RUNS": ["run.finished", "run.finished.*"],
    "CTL": ["memory.write", "memory.write.*"],
    "EVENTS": ["memory.event.>"],
}


async def make_streams(client: Client) -> None:
    stream = client.jetstream()
    for name, subjects in STREAMS.items():
        if await has_stream(client, name):
            await stream.delete_stream(name)
        await stream.add_stream(StreamConfig(name=name, subjects=subjects, max_msg_size=256 * 1024))


async def has_stream(client: Client, name: str) -> bool:
    return name in [info.config.name for info in await client.jetstream().streams_info()]


@pytest.fixture(scope="module")
async def shared_bus() -> AsyncIterator[Bus]:
    async with running_bus() as bus:
        yield bus


@pytest.fixture
async def bus(shared_bus: Bus) -> Bus:
    """A bus with fresh streams."""
    await make_streams(shared_bus.client)
    return shared_bus


@pytest.fixture
async def memory(bus: Bus) -> AsyncIterator[Lorebus]:
    async with Lorebus(bus.url) as memory:
        yield memory


FIXTURES = (shared_bus, bus, memory)


def answer(reply: object) -> Respond:
    async def respond(message: Msg) -> None:
        await message.respond(json.dumps(reply).encode())

    return respond


async def keep_silent(_message: Msg) -> None:
    """A member that hangs."""
