"""Publishing a run to a real nats-server: what publishers are promised."""

import asyncio
import json

import pytest
from client_bus import FIXTURES, RUN, Bus, make_streams
from lorebus import EventNotAcknowledged, InvalidMessage, Lorebus, Published, RunFinished

shared_bus, bus, memory = FIXTURES


async def test_a_run_is_stored_as_the_contract_says(bus: Bus, memory: Lorebus):
    published = await memory.publish_run({**RUN, "provenance": {"source": "x"}})

    assert published == Published("r1:commitToMemory:CI_FAILED", 1, duplicate=False)
    stored = await bus.client.jetstream().get_msg("RUNS", 1)
    assert stored.subject == "run.finished"
    body = json.loads(stored.data or b"")
    assert body["schema"] == "run.finished"
    assert "provenance" not in body


async def test_the_same_run_counts_once(memory: Lorebus):
    first = await memory.publish_run(RUN)
    second = await memory.publish_run(RunFinished.model_validate(RUN))

    assert second == Published(first.event_id, first.sequence, duplicate=True)


async def test_another_tenant_has_its_own_subject_and_ids(bus: Bus, memory: Lorebus):
    await memory.publish_run(RUN)
    async with Lorebus(bus.url, "acme") as acme:
        published = await acme.publish_run(RUN)

    assert not published.duplicate
    stored = await bus.client.jetstream().get_msg("RUNS", published.sequence)
    assert stored.subject == "run.finished.acme"


async def test_a_run_of_another_tenant_is_refused(memory: Lorebus):
    with pytest.raises(InvalidMessage, match="another tenant"):
        await memory.publish_run({**RUN, "tenant": "acme"})


async def test_what_does_not_fit_the_contract_is_refused_without_its_content(memory: Lorebus):
    with pytest.raises(InvalidMessage, match="repository") as refused:
        await memory.publish_run({"run_id": "r1", "repository": "top secret", "outcome": "MERGED"})
    assert "top secret" not in str(refused.value)


async def test_a_run_that_is_too_large_names_what_is(bus: Bus, memory: Lorebus):
    large = {**RUN, "attempts": [{"kind": "ci", "log_tail": "x" * 300_000}]}

    with pytest.raises(InvalidMessage, match=r"294 KiB; at most 256 fit.*attempts"):
        await memory.publish_run(large)
    assert (await bus.client.jetstream().stream_info("RUNS")).state.messages == 0


async def test_the_largest_run_that_is_let_through_fits_the_stream(memory: Lorebus):
    run = {**RUN, "attempts": [{"kind": "ci", "log_tail": ""}]}
    with pytest.raises(InvalidMessage, match="at most 256 fit"):
        await memory.publish_run({**run, "attempts": [{"kind": "ci", "log_tail": "x" * 261_900}]})

    published = await memory.publish_run({**run, "attempts": [{"kind": "ci", "log_tail": "x" * 261_800}]})
    assert published.sequence == 1


async def test_without_a_stream_the_error_names_the_remedy(bus: Bus, memory: Lorebus):
    await bus.client.jetstream().delete_stream("RUNS")

    with pytest.raises(EventNotAcknowledged, match=r"lorebus migrate.*counts once"):
        await memory.publish_run(RUN, patience_seconds=0.5)


async def test_a_bus_that_is_down_is_named_without_its_password():
    async with Lorebus("nats://user:hidden@127.0.0.1:1") as memory:
        with pytest.raises(EventNotAcknowledged, match=r"nats://127.0.0.1:1 could not be reached") as error:
            await memory.publish_run(RUN, patience_seconds=0.3)
    assert "hidden" not in str(error.value)


async def test_a_run_waits_for_a_stream_that_is_on_its_way(bus: Bus, memory: Lorebus):
    await bus.client.jetstream().delete_stream("RUNS")
    await memory.wait_connected(5)

    publishing = asyncio.create_task(memory.publish_run(RUN))
    await make_streams(bus.client)

    assert (await publishing).sequence == 1
