"""The client against a real nats-server: what agents and publishers are promised."""

import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nats
import pytest
from lorebus import (
    EventNotAcknowledged,
    InvalidMessage,
    Lorebus,
    LorebusError,
    MemoryUnavailable,
    Published,
    RunFinished,
    Tap,
    TappedEvent,
)
from lorebus.contracts.events import LessonWritten
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import StreamConfig

from libs.embedded.nats_server import EmbeddedNats

NOBODY = "nats://127.0.0.1:1"
RUN = {"run_id": "r1", "repository": "acme/shop", "outcome": "CI_FAILED"}
ITEM = {"id": "i1", "summary": "install opencv", "similarity": 0.9, "created_at": "2026-11-30T12:00:00Z"}
WRITTEN = {"event_id": "e1", "run_id": "r1", "repository": "acme/shop", "id": "l1"}

Respond = Callable[[Msg], Awaitable[None]]


async def take(tap: Tap, count: int) -> list[TappedEvent]:
    """So many facts, in time or not at all."""
    async with asyncio.timeout(30):
        return [await anext(tap) for _ in range(count)]


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


@pytest.fixture(scope="module")
async def shared_bus() -> AsyncIterator[Bus]:
    async with running_bus() as bus:
        yield bus


@pytest.fixture
async def bus(shared_bus: Bus) -> Bus:
    """A bus with fresh streams."""
    await make_streams(shared_bus.client)
    return shared_bus


async def make_streams(client: Client) -> None:
    stream = client.jetstream()
    for name, subjects in (("RUNS", ["run.finished", "run.finished.*"]), ("EVENTS", ["memory.event.>"])):
        if await has_stream(client, name):
            await stream.delete_stream(name)
        await stream.add_stream(StreamConfig(name=name, subjects=subjects, max_msg_size=256 * 1024))


async def has_stream(client: Client, name: str) -> bool:
    return name in [info.config.name for info in await client.jetstream().streams_info()]


@pytest.fixture
async def memory(bus: Bus) -> AsyncIterator[Lorebus]:
    async with Lorebus(bus.url) as memory:
        yield memory


def answer(reply: object) -> Respond:
    async def respond(message: Msg) -> None:
        await message.respond(json.dumps(reply).encode())

    return respond


async def keep_silent(_message: Msg) -> None:
    """A member that hangs."""


class TestPublishing:
    async def test_a_run_is_stored_as_the_contract_says(self, bus: Bus, memory: Lorebus):
        published = await memory.publish_run({**RUN, "provenance": {"source": "x"}})

        assert published == Published("r1:commitToMemory:CI_FAILED", 1, duplicate=False)
        stored = await bus.client.jetstream().get_msg("RUNS", 1)
        assert stored.subject == "run.finished"
        body = json.loads(stored.data or b"")
        assert body["schema"] == "run.finished"
        assert "provenance" not in body

    async def test_the_same_run_counts_once(self, memory: Lorebus):
        first = await memory.publish_run(RUN)
        second = await memory.publish_run(RunFinished.model_validate(RUN))

        assert second == Published(first.event_id, first.sequence, duplicate=True)

    async def test_another_tenant_has_its_own_subject_and_ids(self, bus: Bus, memory: Lorebus):
        await memory.publish_run(RUN)
        async with Lorebus(bus.url, "acme") as acme:
            published = await acme.publish_run(RUN)

        assert not published.duplicate
        stored = await bus.client.jetstream().get_msg("RUNS", published.sequence)
        assert stored.subject == "run.finished.acme"

    async def test_a_run_of_another_tenant_is_refused(self, memory: Lorebus):
        with pytest.raises(InvalidMessage, match="another tenant"):
            await memory.publish_run({**RUN, "tenant": "acme"})

    async def test_what_does_not_fit_the_contract_is_refused_without_its_content(self, memory: Lorebus):
        with pytest.raises(InvalidMessage, match="repository") as refused:
            await memory.publish_run({"run_id": "r1", "repository": "top secret", "outcome": "MERGED"})
        assert "top secret" not in str(refused.value)

    async def test_a_run_that_is_too_large_names_what_is(self, bus: Bus, memory: Lorebus):
        large = {**RUN, "attempts": [{"kind": "ci", "log_tail": "x" * 300_000}]}

        with pytest.raises(InvalidMessage, match=r"294 KiB; at most 256 fit.*attempts"):
            await memory.publish_run(large)
        assert (await bus.client.jetstream().stream_info("RUNS")).state.messages == 0

    async def test_the_largest_run_that_is_let_through_fits_the_stream(self, memory: Lorebus):
        run = {**RUN, "attempts": [{"kind": "ci", "log_tail": ""}]}
        with pytest.raises(InvalidMessage, match="at most 256 fit"):
            await memory.publish_run({**run, "attempts": [{"kind": "ci", "log_tail": "x" * 261_900}]})

        published = await memory.publish_run({**run, "attempts": [{"kind": "ci", "log_tail": "x" * 261_800}]})
        assert published.sequence == 1

    async def test_without_a_stream_the_error_names_the_remedy(self, bus: Bus, memory: Lorebus):
        await bus.client.jetstream().delete_stream("RUNS")

        with pytest.raises(EventNotAcknowledged, match=r"lorebus migrate.*counts once"):
            await memory.publish_run(RUN, patience_seconds=0.5)

    async def test_a_bus_that_is_down_is_named_without_its_password(self):
        async with Lorebus("nats://user:hidden@127.0.0.1:1") as memory:
            with pytest.raises(EventNotAcknowledged, match=r"nats://127.0.0.1:1 could not be reached") as error:
                await memory.publish_run(RUN, patience_seconds=0.3)
        assert "hidden" not in str(error.value)

    async def test_a_run_waits_for_a_stream_that_is_on_its_way(self, bus: Bus, memory: Lorebus):
        await bus.client.jetstream().delete_stream("RUNS")
        await memory.wait_connected(5)

        publishing = asyncio.create_task(memory.publish_run(RUN))
        await make_streams(bus.client)

        assert (await publishing).sequence == 1


class TestRecalling:
    async def test_a_good_answer_arrives_whole(self, bus: Bus, memory: Lorebus):
        asked: list[dict[str, object]] = []

        async def respond(message: Msg) -> None:
            asked.append(json.loads(message.data))
            await answer({"items": [ITEM], "block": "# lessons"})(message)

        async with bus.answering("recall.request", respond):
            reply = await memory.recall("no cv2", repository="acme/shop", agent="ci_fixer", limit=3)

        assert [(item.id, item.similarity) for item in reply.items] == [("i1", 0.9)]
        assert (reply.block, reply.degraded) == ("# lessons", False)
        [request] = asked
        assert (request["repository"], request["agent"], request["limit"]) == ("acme/shop", "ci_fixer", 3)
        assert 900 <= int(str(request["deadline_ms"])) < 1000

    async def test_a_tenant_asks_on_its_own_subject(self, bus: Bus):
        async with bus.answering("recall.request.acme", answer({"items": [ITEM]})), Lorebus(bus.url, "acme") as acme:
            reply = await acme.recall("q", repository="acme/shop")
        assert len(reply.items) == 1

    async def test_no_service_is_known_at_once(self, memory: Lorebus):
        asked = time.monotonic()
        reply = await memory.recall("q", repository="acme/shop")

        assert (reply.items, reply.degraded, reply.reason) == ([], True, "bus")
        assert time.monotonic() - asked < 0.5

    async def test_a_hung_service_costs_the_deadline_and_no_more(self, bus: Bus, memory: Lorebus):
        async with bus.answering("recall.request", keep_silent):
            asked = time.monotonic()
            reply = await memory.recall("q", repository="acme/shop", deadline_seconds=0.4)

        assert (reply.degraded, reply.reason) == (True, "deadline")
        assert 0.4 <= time.monotonic() - asked < 0.8

    async def test_an_unanswered_question_is_asked_once_more(self, bus: Bus, memory: Lorebus):
        asked: list[Msg] = []

        async def hang_once(message: Msg) -> None:
            asked.append(message)
            if len(asked) > 1:
                await answer({"items": [ITEM]})(message)

        async with bus.answering("recall.request", hang_once):
            reply = await memory.recall("q", repository="acme/shop")

        assert len(reply.items) == 1
        assert len(asked) == 2

    async def test_a_late_answer_to_the_first_question_counts(self, bus: Bus, memory: Lorebus):
        asked: list[Msg] = []

        async def answer_the_first_late(message: Msg) -> None:
            asked.append(message)
            if len(asked) == 2:
                await answer({"items": [ITEM]})(asked[0])

        async with bus.answering("recall.request", answer_the_first_late):
            reply = await memory.recall("q", repository="acme/shop")
        assert len(reply.items) == 1

    @pytest.mark.parametrize(
        "rubbish",
        [b"", b"\xff\xfe", b"[]", b"{}", b'{"stream": "RUNS", "seq": 1}', b'{"items": "none"}', b"[" * 50_000],
        ids=["empty", "no text", "a list", "no answer in it", "an acknowledgement", "wrong type", "too deep"],
    )
    async def test_rubbish_is_a_degraded_answer(self, bus: Bus, memory: Lorebus, rubbish: bytes):
        async def respond(message: Msg) -> None:
            await message.respond(rubbish)

        async with bus.answering("recall.request", respond):
            reply = await memory.recall("q", repository="acme/shop")
        assert (reply.items, reply.degraded, reply.reason) == ([], True, "bus")

    async def test_what_the_service_says_of_itself_is_passed_on(self, bus: Bus, memory: Lorebus):
        async with bus.answering("recall.request", answer({"degraded": True, "reason": "gate"})):
            reply = await memory.recall("q", repository="acme/shop")
        assert (reply.degraded, reply.reason) == (True, "gate")

    async def test_a_wrong_argument_is_the_callers_to_know(self, memory: Lorebus):
        with pytest.raises(InvalidMessage, match="exactly one of repository, channel and project"):
            await memory.recall("q", repository="acme/shop", channel="C1")
        with pytest.raises(InvalidMessage, match="deadline_ms"):
            await memory.recall("q", repository="acme/shop", deadline_seconds=0.001)
        with pytest.raises(InvalidMessage, match="KiB"):
            await memory.recall("q" * 600_000, repository="acme/shop")
        with pytest.raises(InvalidMessage, match="tenant"):
            Lorebus(tenant="a.>")

    async def test_search_and_explain_follow_the_same_policy(self, bus: Bus, memory: Lorebus):
        found = {"lesson_id": "l1", "summary": "install opencv", "similarity": 0.8}
        async with (
            bus.answering("recall.search", answer({"lessons": [found]})),
            bus.answering("recall.explain", answer({"lesson": None})),
        ):
            lessons = (await memory.search("q", repository="acme/shop")).lessons
            explained = await memory.explain("l1")

        assert [lesson.lesson_id for lesson in lessons] == ["l1"]
        assert (explained.lesson, explained.degraded) == (None, False)
        assert (await memory.search("q", repository="acme/shop")).reason == "bus"
        assert (await memory.explain("l1")).reason == "bus"


class TestConnection:
    async def test_a_bus_that_is_down_fails_no_agent(self):
        started = time.monotonic()
        async with Lorebus(NOBODY) as memory:
            reply = await memory.recall("q", repository="acme/shop")
        assert (reply.degraded, reply.reason) == (True, "bus")
        assert time.monotonic() - started < 0.5

    async def test_a_url_that_is_none_fails_no_agent(self):
        async with Lorebus("nats://") as memory:
            assert (await memory.recall("q", repository="acme/shop")).reason == "bus"

    async def test_leaving_while_it_connects_never_hangs(self, bus: Bus):
        async with asyncio.timeout(60):
            for turns in range(300):
                async with Lorebus(bus.url):
                    for _ in range(turns % 40):
                        await asyncio.sleep(0)

    async def test_a_client_that_was_not_entered_says_so(self):
        with pytest.raises(LorebusError, match="async with"):
            await Lorebus(NOBODY).recall("q", repository="acme/shop")

    async def test_the_url_comes_from_the_environment(self, bus: Bus, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("LOREBUS_NATS_URL", bus.url)
        async with Lorebus() as memory:
            assert await memory.wait_connected(5)

    async def test_a_bus_that_comes_later_is_found_in_the_background(self):
        async with running_bus() as bus:
            await bus.server.stop()
            async with Lorebus(bus.url) as memory:
                assert (await memory.recall("q", repository="acme/shop")).reason == "bus"
                await bus.server.start()
                assert await memory.wait_connected(10)
                await make_streams(bus.client)
                assert (await memory.publish_run(RUN)).sequence == 1

    async def test_a_run_published_while_the_bus_restarts_arrives(self):
        async with running_bus() as bus, Lorebus(bus.url) as memory:
            await make_streams(bus.client)
            assert await memory.wait_connected(5)
            await bus.server.stop()
            publishing = asyncio.create_task(memory.publish_run(RUN))
            await bus.server.start()
            assert (await publishing).event_id == "r1:commitToMemory:CI_FAILED"


class TestTapping:
    async def test_only_what_comes_from_now_on(self, bus: Bus, memory: Lorebus):
        await bus.tell("lesson_skipped")
        async with memory.events() as tap:
            sequence = await bus.tell("lesson_written")
            [fact] = await take(tap, 1)

        assert (fact.kind, fact.tenant, fact.subject) == ("lesson_written", "default", "memory.event.lesson_written")
        assert (fact.sequence, fact.payload) == (sequence, WRITTEN)
        assert fact.event == LessonWritten.model_validate(WRITTEN)
        assert abs(datetime.now(UTC) - fact.published_at) < timedelta(minutes=1)

    async def test_everything_or_since_an_age(self, bus: Bus, memory: Lorebus):
        told = [await bus.tell("lesson_written") for _ in range(300)]
        for since in ("start", timedelta(hours=1), datetime.now(UTC) - timedelta(hours=1)):
            async with memory.events(since=since) as tap:
                assert [fact.sequence for fact in await take(tap, 300)] == told

    async def test_only_the_kinds_asked_for(self, bus: Bus, memory: Lorebus):
        for kind in ("lesson_written", "lesson_skipped", "dead", "lesson_written"):
            await bus.tell(kind)
        async with memory.events({"lesson_written"}, "start") as one, memory.events({"dead", "x"}, "start") as two:
            assert [fact.sequence for fact in await take(one, 2)] == [1, 4]
            assert [fact.sequence for fact in await take(two, 1)] == [3]

    async def test_a_tenant_hears_its_own_facts_only(self, bus: Bus, memory: Lorebus):
        await bus.tell("lesson_written", tenant="acme")
        await bus.tell("lesson_skipped")
        async with memory.events(since="start") as ours, Lorebus(bus.url, "acme") as acme:
            assert [fact.kind for fact in await take(ours, 1)] == ["lesson_skipped"]
            async with acme.events(since="start") as theirs:
                [fact] = await take(theirs, 1)
        assert (fact.kind, fact.tenant) == ("lesson_written", "acme")

    async def test_facts_of_other_versions_have_no_type(self, bus: Bus, memory: Lorebus):
        await bus.tell("not_known_yet")
        await bus.tell("lesson_written", {"id": 7})
        await bus.tell("dead", ["no object"])
        async with memory.events(since="start") as tap:
            facts = await take(tap, 3)
        assert [(fact.payload, fact.event) for fact in facts] == [(WRITTEN, None), ({"id": 7}, None), ({}, None)]

    async def test_no_fact_is_missed_or_told_twice_over_restarts_of_the_bus(self):
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

    async def test_a_fact_told_before_the_first_read_outlives_a_restart(self):
        async with running_bus() as bus, Lorebus(bus.url) as memory:
            await make_streams(bus.client)
            async with memory.events() as tap:
                told = await bus.tell("lesson_written")
                await bus.server.stop()
                await bus.server.start()
                assert [fact.sequence for fact in await take(tap, 1)] == [told]

    async def test_a_connection_that_the_server_ended_for_good_is_opened_anew(self, bus: Bus, memory: Lorebus):
        async with memory.events() as tap:
            await memory.connection.client.close()
            told = await bus.tell("lesson_written")
            assert [fact.sequence for fact in await take(tap, 1)] == [told]

    async def test_a_consumer_that_is_taken_away_is_made_anew(self, bus: Bus, memory: Lorebus):
        async with memory.events() as tap:
            await bus.tell("lesson_written")
            assert [fact.sequence for fact in await take(tap, 1)] == [1]
            stream = bus.client.jetstream()
            for info in await stream.consumers_info("EVENTS"):
                await stream.delete_consumer("EVENTS", info.name)
            await bus.tell("lesson_written")
            assert [fact.sequence for fact in await take(tap, 1)] == [2]

    async def test_without_the_stream_the_error_names_the_remedy(self, bus: Bus, memory: Lorebus):
        await bus.client.jetstream().delete_stream("EVENTS")
        with pytest.raises(MemoryUnavailable, match="lorebus migrate"):
            await take(memory.events(), 1)

    async def test_leaving_a_tap_leaves_nothing_on_the_bus(self, bus: Bus, memory: Lorebus):
        async with memory.events():
            assert len(await bus.client.jetstream().consumers_info("EVENTS")) == 1
        assert await bus.client.jetstream().consumers_info("EVENTS") == []

    async def test_a_kind_is_a_word(self, memory: Lorebus):
        with pytest.raises(InvalidMessage, match="lesson_written"):
            memory.events({"a.>"})
