"""Live facts from a real nats-server: each once, in order."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from client_bus import FIXTURES, WRITTEN, Bus, make_streams, running_bus
from lorebus import InvalidMessage, Lorebus, MemoryUnavailable, Tap, TappedEvent
from lorebus.contracts.facts.writer import LessonWritten

shared_bus, bus, memory = FIXTURES


async def take(tap: Tap, count: int) -> list[TappedEvent]:
    """So many facts, in time or not at all."""
    async with asyncio.timeout(30):
        return [await anext(tap) for _ in range(count)]


async def test_only_what_comes_from_now_on(bus: Bus, memory: Lorebus):
    await bus.tell("lesson_skipped")
    async with memory.events() as tap:
        sequence = await bus.tell("lesson_written")
        [fact] = await take(tap, 1)

    assert (fact.kind, fact.tenant, fact.subject) == ("lesson_written", "default", "memory.event.lesson_written")
    assert (fact.sequence, fact.payload) == (sequence, WRITTEN)
    assert fact.event == LessonWritten.model_validate(WRITTEN)
    assert abs(datetime.now(UTC) - fact.published_at) < timedelta(minutes=1)


async def test_everything_or_since_an_age(bus: Bus, memory: Lorebus):
    told = [await bus.tell("lesson_written") for _ in range(300)]
    for since in ("start", timedelta(hours=1), datetime.now(UTC) - timedelta(hours=1)):
        async with memory.events(since=since) as tap:
            assert [fact.sequence for fact in await take(tap, 300)] == told


async def test_only_the_kinds_asked_for(bus: Bus, memory: Lorebus):
    for kind in ("lesson_written", "lesson_skipped", "dead", "lesson_written"):
        await bus.tell(kind)
    async with memory.events({"lesson_written"}, "start") as one, memory.events({"dead", "x"}, "start") as two:
        assert [fact.sequence for fact in await take(one, 2)] == [1, 4]
        assert [fact.sequence for fact in await take(two, 1)] == [3]


async def test_a_tenant_hears_its_own_facts_only(bus: Bus, memory: Lorebus):
    await bus.tell("lesson_written", tenant="acme")
    await bus.tell("lesson_skipped")
    async with memory.events(since="start") as ours, Lorebus(bus.url, "acme") as acme:
        assert [fact.kind for fact in await take(ours, 1)] == ["lesson_skipped"]
        async with acme.events(since="start") as theirs:
            [fact] = await take(theirs, 1)
    assert (fact.kind, fact.tenant) == ("lesson_written", "acme")


async def test_facts_of_other_versions_have_no_type(bus: Bus, memory: Lorebus):
    await bus.tell("not_known_yet")
    await bus.tell("lesson_written", {"id": 7})
    await bus.tell("dead", ["no object"])
    async with memory.events(since="start") as tap:
        facts = await take(tap, 3)
    assert [(fact.payload, fact.event) for fact in facts] == [(WRITTEN, None), ({"id": 7}, None), ({}, None)]


async def test_no_fact_is_missed_or_told_twice_over_restarts_of_the_bus():
    async with running_bus() as bus, Lorebus(bus.url) as memory:
        await make_streams(bus.client)
        async with memory.events() as tap:
            for _ in range(2):
                told = [await bus.tell("lesson_written"), await bus.tell("lesson_written")]
                assert [fact.sequence for fact in await take(tap, 1)] == told[:1]
                await bus.server.stop()
                await bus.server.start()
                await bus.client.flush(timeout=10)
                told.append(await bus.tell("lesson_written"))
                assert [fact.sequence for fact in await take(tap, 2)] == told[1:]


async def test_a_fact_told_before_the_first_read_outlives_a_restart():
    async with running_bus() as bus, Lorebus(bus.url) as memory:
        await make_streams(bus.client)
        async with memory.events() as tap:
            told = await bus.tell("lesson_written")
            await bus.server.stop()
            await bus.server.start()
            assert [fact.sequence for fact in await take(tap, 1)] == [told]


async def test_a_connection_that_the_server_ended_for_good_is_opened_anew(bus: Bus, memory: Lorebus):
    async with memory.events() as tap:
        await memory.connection.client.close()
        told = await bus.tell("lesson_written")
        assert [fact.sequence for fact in await take(tap, 1)] == [told]


async def test_a_consumer_that_is_taken_away_is_made_anew(bus: Bus, memory: Lorebus):
    async with memory.events() as tap:
        await bus.tell("lesson_written")
        assert [fact.sequence for fact in await take(tap, 1)] == [1]
        stream = bus.client.jetstream()
        for info in await stream.consumers_info("EVENTS"):
            await stream.delete_consumer("EVENTS", info.name)
        await bus.tell("lesson_written")
        assert [fact.sequence for fact in await take(tap, 1)] == [2]


async def test_without_the_stream_the_error_names_the_remedy(bus: Bus, memory: Lorebus):
    await bus.client.jetstream().delete_stream("EVENTS")
    with pytest.raises(MemoryUnavailable, match="lorebus migrate"):
        await take(memory.events(), 1)


async def test_leaving_a_tap_leaves_nothing_on_the_bus(bus: Bus, memory: Lorebus):
    async with memory.events():
        assert len(await bus.client.jetstream().consumers_info("EVENTS")) == 1
    assert await bus.client.jetstream().consumers_info("EVENTS") == []


async def test_a_kind_is_a_word(memory: Lorebus):
    with pytest.raises(InvalidMessage, match="lesson_written"):
        memory.events({"a.>"})
