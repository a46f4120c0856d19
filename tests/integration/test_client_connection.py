"""The client while the bus is down, gone or comes back."""

import asyncio
import time

import pytest
from client_bus import FIXTURES, NOBODY, RUN, Bus, make_streams, running_bus
from lorebus import Lorebus, LorebusError

shared_bus, bus, memory = FIXTURES


async def test_a_bus_that_is_down_fails_no_agent():
    started = time.monotonic()
    async with Lorebus(NOBODY) as memory:
        reply = await memory.recall("q", repository="acme/shop")
    assert (reply.degraded, reply.reason) == (True, "bus")
    assert time.monotonic() - started < 0.5


async def test_a_url_that_is_none_fails_no_agent():
    async with Lorebus("nats://") as memory:
        assert (await memory.recall("q", repository="acme/shop")).reason == "bus"


async def test_leaving_while_it_connects_never_hangs(bus: Bus):
    async with asyncio.timeout(60):
        for turns in range(300):
            async with Lorebus(bus.url):
                for _ in range(turns % 40):
                    await asyncio.sleep(0)


async def test_a_client_that_was_not_entered_says_so():
    with pytest.raises(LorebusError, match="async with"):
        await Lorebus(NOBODY).recall("q", repository="acme/shop")


async def test_the_url_comes_from_the_environment(bus: Bus, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LOREBUS_NATS_URL", bus.url)
    async with Lorebus() as memory:
        assert await memory.wait_connected(5)


async def test_a_bus_that_comes_later_is_found_in_the_background():
    async with running_bus() as bus:
        await bus.server.stop()
        async with Lorebus(bus.url) as memory:
            assert (await memory.recall("q", repository="acme/shop")).reason == "bus"
            await bus.server.start()
            assert await memory.wait_connected(10)
            await make_streams(bus.client)
            assert (await memory.publish_run(RUN)).sequence == 1


async def test_a_run_published_while_the_bus_restarts_arrives():
    async with running_bus() as bus, Lorebus(bus.url) as memory:
        await make_streams(bus.client)
        assert await memory.wait_connected(5)
        await bus.server.stop()
        publishing = asyncio.create_task(memory.publish_run(RUN))
        await bus.server.start()
        assert (await publishing).event_id == "r1:commitToMemory:CI_FAILED"
