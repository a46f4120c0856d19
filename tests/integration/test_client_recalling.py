"""Asking over a real nats-server, with services that the test plays: what agents are promised."""

import json
import time

import pytest
from client_bus import FIXTURES, NOBODY, Bus, answer, keep_silent
from lorebus import InvalidMessage, Lorebus, RecallReply
from nats.aio.msg import Msg

shared_bus, bus, memory = FIXTURES

ITEM = {"id": "i1", "summary": "install opencv", "similarity": 0.9, "created_at": "2026-11-30T12:00:00Z"}


async def test_a_good_answer_arrives_whole(bus: Bus, memory: Lorebus):
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


async def test_a_tenant_asks_on_its_own_subject(bus: Bus):
    async with bus.answering("recall.request.acme", answer({"items": [ITEM]})), Lorebus(bus.url, "acme") as acme:
        reply = await acme.recall("q", repository="acme/shop")
    assert len(reply.items) == 1


async def test_no_service_is_known_at_once(memory: Lorebus):
    asked = time.monotonic()
    reply = await memory.recall("q", repository="acme/shop")

    assert (reply.items, reply.degraded, reply.reason) == ([], True, "bus")
    assert time.monotonic() - asked < 0.5


async def test_a_hung_service_costs_the_deadline_and_no_more(bus: Bus, memory: Lorebus):
    async with bus.answering("recall.request", keep_silent):
        asked = time.monotonic()
        reply = await memory.recall("q", repository="acme/shop", deadline_seconds=0.4)

    assert (reply.degraded, reply.reason) == (True, "deadline")
    assert 0.4 <= time.monotonic() - asked < 0.8


async def test_an_unanswered_question_is_asked_once_more(bus: Bus, memory: Lorebus):
    asked: list[Msg] = []

    async def hang_once(message: Msg) -> None:
        asked.append(message)
        if len(asked) > 1:
            await answer({"items": [ITEM]})(message)

    async with bus.answering("recall.request", hang_once):
        reply = await memory.recall("q", repository="acme/shop")

    assert len(reply.items) == 1
    assert len(asked) == 2


async def test_a_late_answer_to_the_first_question_counts(bus: Bus, memory: Lorebus):
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
async def test_rubbish_is_a_degraded_answer(bus: Bus, memory: Lorebus, rubbish: bytes):
    async def respond(message: Msg) -> None:
        await message.respond(rubbish)

    async with bus.answering("recall.request", respond):
        reply = await memory.recall("q", repository="acme/shop")
    assert (reply.items, reply.degraded, reply.reason) == ([], True, "bus")


async def test_what_the_service_says_of_itself_is_passed_on(bus: Bus, memory: Lorebus):
    async with bus.answering("recall.request", answer({"degraded": True, "reason": "gate"})):
        reply = await memory.recall("q", repository="acme/shop")
    assert (reply.degraded, reply.reason) == (True, "gate")


async def test_a_wrong_argument_is_the_callers_to_know(memory: Lorebus):
    with pytest.raises(InvalidMessage, match="exactly one of repository, channel and project"):
        await memory.recall("q", repository="acme/shop", channel="C1")
    with pytest.raises(InvalidMessage, match="deadline_ms"):
        await memory.recall("q", repository="acme/shop", deadline_seconds=0.001)
    with pytest.raises(InvalidMessage, match="KiB"):
        await memory.recall("q" * 600_000, repository="acme/shop")
    with pytest.raises(InvalidMessage, match="tenant"):
        Lorebus(tenant="a.>")


@pytest.mark.parametrize("query", ["", " \n"], ids=["empty", "blank"])
async def test_a_blank_query_is_answered_empty_without_asking(memory: Lorebus, query: str):
    reply = await memory.recall(query, repository="acme/shop")
    assert reply == RecallReply()


@pytest.mark.parametrize("repository", [None, ""], ids=["none", "empty"])
async def test_without_a_repository_the_answer_is_empty_without_asking(repository: str | None):
    async with Lorebus(NOBODY) as memory:
        assert await memory.recall("q", repository=repository) == RecallReply()


async def test_search_and_explain_follow_the_same_policy(bus: Bus, memory: Lorebus):
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
