"""Asking for lessons, on the real bus and database."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import asyncpg
import nats
import numpy as np
import pytest
import sqlalchemy as sa
from conftest import LOG_FILE, Installation, ci_run, run_services
from lorebus import Lorebus
from lorebus.contracts.facts.recall import LessonsRetrieved
from stored_rows import store_rows

from libs.common.administered_settings import AdministeredSettings
from libs.common.database import create_pool
from libs.common.domain.calibration import measure_background
from libs.common.domain.lexical import Frequencies, count_documents, tokenize, weigh_terms
from libs.common.domain.query import prepare_query
from libs.common.domain.relevance import Candidate, Ranked, gate_of_setting, rank_items, recall_items
from libs.common.domain.setting_cascade import PLATFORM, Place
from libs.common.embedding.choose import create_embedder
from libs.common.embedding.models import ServingModel, background_texts, open_model
from libs.common.schema import (
    gate_patterns,
    memory_fingerprints,
    memory_items,
    memory_sources,
    memory_vectors,
    recall_log,
    scopes,
)
from libs.common.settings import CommonSettings
from services.gate.app import PROGRAM as GATE
from services.recall.app import PROGRAM as RECALL
from services.recall.rules import MATCHED_NOTE, ScopeName, bars_of
from services.recall.statement import FIND_SCOPE
from services.recall.statement import RECALL as RECALL_STATEMENT
from services.recall.store import Question, RecallStore, statement_values
from services.writer.app import PROGRAM as WRITER

LOGS = {
    "module": "> node build.js\nError: Cannot find module 'fast-glob'\nnpm ERR! code ELIFECYCLE\n",
    "compiler": "src/parser.c:88:12: error: implicit declaration of function 'strlcpy'\nmake: *** [parser.o] Error 1\n",
    "test": "FAILED tests/test_dates.py::test_leap_year - AssertionError: assert 28 == 29\n1 failed, 40 passed\n",
    "disk": "tar: write error\nNo space left on device while unpacking the toolchain archive\n",
    "lint": "app/models/user.rb:14:121: C: Layout/LineLength: Line is too long. [134/120]\nrubocop found 1 offense\n",
    "timeout": "Test suite exceeded the time limit of 35 minutes and was terminated: integration/browser\n",
}


async def fill(installation: Installation, repository: str) -> dict[str, str]:
    """Six different lessons in the repository: ids by name."""
    ids: dict[str, str] = {}
    for name, log in LOGS.items():
        event = await installation.publish(ci_run(repository, log))
        ids[name] = str(event.item_ids[0])
    return ids


@pytest.fixture(scope="module")
async def filled(installation: Installation) -> tuple[str, dict[str, str]]:
    repository = f"tests/recall-{uuid4().hex[:8]}"
    return repository, await fill(installation, repository)


async def raw_answer(url: str, subject: str, body: bytes) -> dict[str, object]:
    client = await nats.connect(url)
    reply = await client.request(subject, body, timeout=5)
    await client.close()
    return json.loads(reply.data)


async def test_the_lesson_that_fits_comes_back_first(
    installation: Installation, filled: tuple[str, dict[str, str]]
) -> None:
    repository, ids = filled
    reply = await installation.recall(repository, "node cannot find the module fast-glob when it builds")
    assert reply.items[0].id == ids["module"]
    assert not reply.degraded


async def test_a_log_asks_with_its_error_lines(installation: Installation, filled: tuple[str, dict[str, str]]) -> None:
    repository, ids = filled
    noise = "\n".join(f"2026-01-01T00:00:{n % 60:02d}Z Compiling dependency {n} of 300" for n in range(300))
    reply = await installation.recall(repository, f"{noise}\nError: Cannot find module 'fast-glob'\nnpm ERR! exit 1\n")
    assert reply.items[0].id == ids["module"]


async def test_a_ci_fixer_asks_with_the_error_lines_of_a_text_that_is_mostly_prose(
    installation: Installation, filled: tuple[str, dict[str, str]]
) -> None:
    error = "Error: Cannot find module 'fast-glob'"
    text = f"The archive of the toolchain was unpacked without trouble.\n{error}\nSo the build of this change stopped."
    by_fixer, by_error = [
        await installation.recall(filled[0], asked, agent="ci_fixer", similarity_min=0) for asked in (text, error)
    ]
    by_implementer = await installation.recall(filled[0], text, agent="implementer", similarity_min=0)
    assert by_fixer.items == by_error.items
    assert by_implementer.items != by_error.items


async def test_the_block_fences_what_came_back(installation: Installation, filled: tuple[str, dict[str, str]]) -> None:
    repository, ids = filled
    reply = await installation.recall(repository, "cannot find module fast-glob")
    assert f"- [CI_FAILURE] (lesson {ids['module']}) " in reply.block
    assert reply.block.endswith("\n</recalled_memory>")


async def test_an_unrelated_question_gets_nothing(
    installation: Installation, filled: tuple[str, dict[str, str]]
) -> None:
    reply = await installation.recall(filled[0], "translate the privacy policy page into Portuguese")
    assert (reply.items, reply.block, reply.degraded) == ([], "", False)


async def test_similarity_zero_lets_everything_through_in_rank_order(
    installation: Installation, filled: tuple[str, dict[str, str]]
) -> None:
    repository, ids = filled
    reply = await installation.recall(repository, "no space left on device", similarity_min=0, limit=10)
    assert {item.id for item in reply.items} == set(ids.values())
    assert reply.items[0].id == ids["disk"]


@pytest.mark.parametrize(("asked", "given"), [(50, 6), (0, 1), (-3, 1), (2, 2)])
async def test_the_limit_is_held_between_one_and_ten(
    installation: Installation, filled: tuple[str, dict[str, str]], asked: int, given: int
) -> None:
    body = {"repository": filled[0], "query": "error", "similarity_min": 0, "limit": asked, "deadline_ms": 5000}
    reply = await raw_answer(installation.settings.nats_url, "recall.request", json.dumps(body).encode())
    assert len(reply["items"]) == given


async def test_no_item_comes_from_another_repository(installation: Installation, repository: str) -> None:
    await installation.publish(ci_run(f"{repository}-neighbour", LOGS["module"]))
    await installation.publish(ci_run(repository, LOGS["disk"]))
    reply = await installation.recall(repository, "cannot find module fast-glob", similarity_min=0, limit=10)
    neighbours = await installation.rows(sa.select(memory_items.c.id).join(scopes).where(scopes.c.key == repository))
    assert {item.id for item in reply.items} == {str(row["id"]) for row in neighbours}


@pytest.mark.parametrize("query", ["", "   \n"])
async def test_an_empty_question_gets_an_empty_answer(
    installation: Installation, filled: tuple[str, dict[str, str]], query: str
) -> None:
    body = json.dumps({"repository": filled[0], "query": query}).encode()
    reply = await raw_answer(installation.settings.nats_url, "recall.request", body)
    assert (reply["items"], reply["degraded"]) == ([], False)


async def test_an_unknown_repository_gets_an_empty_answer(installation: Installation, repository: str) -> None:
    reply = await installation.recall(repository, "anything")
    assert (reply.items, reply.degraded) == ([], False)


INVALID = {
    "not JSON": b"{",
    "not an object": b"7",
    "no key": b'{"query": "x"}',
    "two keys": b'{"query": "x", "repository": "a/b", "channel": "C1"}',
    "a scope that does not go with the key": b'{"query": "x", "scope": "channel-memory", "repository": "a/b"}',
    "a similarity above one": b'{"query": "x", "repository": "a/b", "similarity_min": 1.5}',
}


@pytest.mark.parametrize("body", INVALID.values(), ids=INVALID.keys())
async def test_a_question_that_makes_no_sense_is_answered_with_the_reason(
    installation: Installation, body: bytes
) -> None:
    reply = await raw_answer(installation.settings.nats_url, "recall.request", body)
    assert (reply["degraded"], reply["reason"]) == (True, "invalid_request")
    assert reply["detail"]


@pytest.mark.parametrize("subject", ["recall.search", "recall.explain"])
@pytest.mark.parametrize("body", [b"{", b"7", b"{}"])
async def test_the_agents_tools_are_told_what_was_wrong_too(
    installation: Installation, subject: str, body: bytes
) -> None:
    reply = await raw_answer(installation.settings.nats_url, subject, body)
    assert (reply["degraded"], reply["reason"]) == (True, "invalid_request")


async def test_a_question_on_a_subject_without_a_tenant_is_told_so(installation: Installation) -> None:
    body = b'{"repository": "a/b", "query": "x"}'
    reply = await raw_answer(installation.settings.nats_url, "recall.request.a$b", body)
    assert (reply["reason"], "tenant" in reply["detail"]) == ("invalid_request", True)


async def test_questions_are_answered_side_by_side(
    other_bus: CommonSettings, installation: Installation, filled: tuple[str, dict[str, str]]
) -> None:
    """One question waits for a hung database; the others must not wait behind it."""
    async with run_services(other_bus, GATE, RECALL) as blind, installation.engine.begin() as connection:
        await connection.execute(sa.text("lock table memory_vectors in access exclusive mode"))
        stuck = asyncio.create_task(blind.recall(filled[0], "cannot find module fast-glob"))
        unknown = await blind.memory.explain(str(uuid4()), repository=filled[0])
        assert not stuck.done()
        reply = await stuck
    assert (unknown.lesson, unknown.degraded) == (None, False)
    assert reply.reason == "store"


async def test_a_question_of_another_tenant_sees_none_of_ours(
    installation: Installation, filled: tuple[str, dict[str, str]]
) -> None:
    body = json.dumps({"repository": filled[0], "query": "error", "similarity_min": 0}).encode()
    reply = await raw_answer(installation.settings.nats_url, "recall.request.acme", body)
    assert reply["items"] == []


async def test_what_was_recalled_is_logged_and_told_by_id(
    installation: Installation, filled: tuple[str, dict[str, str]]
) -> None:
    repository, ids = filled
    run_id = str(uuid4())
    await installation.recall(repository, "cannot find module fast-glob", run_id=run_id, agent="ci_fixer")
    [logged] = await installation.until(sa.select(recall_log).where(recall_log.c.run_id == run_id))
    fact = LessonsRetrieved.model_validate(await installation.facts("lessons_retrieved", run_id=run_id))
    assert str(logged["item_ids"][0]) == ids["module"]
    assert (logged["agent"], fact.agent) == ("ci_fixer", "ci_fixer")
    assert [lesson.id for lesson in fact.lessons] == [str(id_) for id_ in logged["item_ids"]]


async def test_search_gives_the_same_lessons_in_short(
    installation: Installation, filled: tuple[str, dict[str, str]]
) -> None:
    repository, ids = filled
    reply = await installation.memory.search("cannot find module fast-glob", repository=repository)
    assert reply.lessons[0].lesson_id == ids["module"]
    assert reply.lessons[0].similarity == round(reply.lessons[0].similarity, 3)


async def test_explain_tells_where_a_lesson_came_from(installation: Installation, repository: str) -> None:
    replaced = await installation.publish(ci_run(repository, LOGS["test"]))
    event = await installation.publish(
        ci_run(repository, LOGS["test"], pull_requests=[{"number": 12, "head_sha": "abc"}, {"head_sha": "d"}])
    )
    reply = await installation.memory.explain(str(event.item_ids[0]), repository=repository)
    assert reply.lesson is not None
    assert (reply.lesson.status, reply.lesson.written_by) == ("active", "commitToMemory")
    assert reply.lesson.evidence["pull_requests"] == [{"number": 12, "head_sha": "abc"}]
    assert [lesson.id for lesson in reply.lesson.replaced] == [str(replaced.item_ids[0])]


async def test_explain_lists_what_a_lesson_was_merged_from(installation: Installation, repository: str) -> None:
    merged, source, elsewhere = [
        (await installation.publish(ci_run(home, LOGS[log]))).item_ids[0]
        for home, log in ((repository, "test"), (repository, "lint"), (f"{repository}-2", "lint"))
    ]
    async with installation.engine.begin() as connection:
        await connection.execute(
            sa.insert(memory_sources), [{"merged_id": merged, "source_id": id_} for id_ in (source, elsewhere)]
        )
        stamp = sa.update(memory_items).where(memory_items.c.id == source).values(consolidated_at=sa.func.now())
        await connection.execute(stamp)
    of_merged = await installation.memory.explain(str(merged), repository=repository)
    of_source = await installation.memory.explain(str(source), repository=repository)
    assert of_merged.lesson
    assert of_source.lesson
    assert [lesson.id for lesson in of_merged.lesson.merged_from] == [str(source)], "none of another repository"
    assert of_source.lesson.status == "consolidated"


async def test_explain_says_that_a_lesson_was_superseded(installation: Installation, repository: str) -> None:
    first, _ = [await installation.publish(ci_run(repository, LOGS["lint"])) for _ in range(2)]
    reply = await installation.memory.explain(str(first.item_ids[0]), repository=repository)
    assert reply.lesson is not None
    assert reply.lesson.status == "superseded"


@pytest.mark.parametrize("lesson_id", ["00000000-0000-5000-8000-000000000000", "not-an-id"])
async def test_explain_of_an_unknown_lesson_finds_none(
    installation: Installation, repository: str, lesson_id: str
) -> None:
    reply = await installation.memory.explain(lesson_id, repository=repository)
    assert (reply.lesson, reply.degraded) == (None, False)


async def test_explain_stays_in_its_repository(
    installation: Installation, filled: tuple[str, dict[str, str]], repository: str
) -> None:
    reply = await installation.memory.explain(filled[1]["disk"], repository=repository)
    assert reply.lesson is None


async def test_without_a_gate_nothing_is_recalled(
    other_bus: CommonSettings, installation: Installation, filled: tuple[str, dict[str, str]]
) -> None:
    async with run_services(other_bus, RECALL) as ungated:
        reply = await ungated.recall(filled[0], "cannot find module fast-glob")
        explained = await ungated.memory.explain(filled[1]["module"], repository=filled[0])
    assert (reply.items, reply.reason) == ([], "gate")
    assert (explained.lesson, explained.reason) == (None, "gate")


async def test_a_gate_without_patterns_lets_nothing_be_recalled(
    other_bus: CommonSettings, installation: Installation, filled: tuple[str, dict[str, str]]
) -> None:
    async def load_failed(message: nats.aio.msg.Msg) -> None:
        await message.respond(b'{"status": "load_failed"}')

    async with run_services(other_bus, RECALL) as ungated:
        client = await nats.connect(other_bus.nats_url)
        await client.subscribe("gate.screen", cb=load_failed)
        await client.flush()
        reply = await ungated.recall(filled[0], "cannot find module fast-glob")
        await client.close()
    assert (reply.items, reply.reason) == ([], "gate")


async def test_a_scan_that_was_not_whole_keeps_the_item(
    other_bus: CommonSettings, installation: Installation, filled: tuple[str, dict[str, str]]
) -> None:
    async def incomplete(message: nats.aio.msg.Msg) -> None:
        texts = json.loads(message.data)["texts"]
        verdicts = [{"id": text["id"], "verdict": "incomplete", "patterns": []} for text in texts]
        await message.respond(json.dumps({"status": "ok", "pattern_set": "p", "verdicts": verdicts}).encode())

    async with run_services(other_bus, RECALL) as partly_gated:
        client = await nats.connect(other_bus.nats_url)
        await client.subscribe("gate.screen", cb=incomplete)
        await client.flush()
        reply = await partly_gated.recall(filled[0], "cannot find module fast-glob")
        await client.close()
    assert reply.items[0].id == filled[1]["module"]
    assert not reply.degraded


async def test_a_gate_that_forgets_an_item_counts_as_no_gate(
    other_bus: CommonSettings, installation: Installation, filled: tuple[str, dict[str, str]]
) -> None:
    async def forgetful(message: nats.aio.msg.Msg) -> None:
        await message.respond(b'{"status": "ok", "pattern_set": "p", "verdicts": []}')

    async with run_services(other_bus, RECALL) as ungated:
        client = await nats.connect(other_bus.nats_url)
        await client.subscribe("gate.screen", cb=forgetful)
        await client.flush()
        reply = await ungated.recall(filled[0], "cannot find module fast-glob")
        await client.close()
    assert (reply.items, reply.reason) == ([], "gate")


async def test_a_hung_gate_costs_the_items_not_the_answer(
    other_bus: CommonSettings, installation: Installation, filled: tuple[str, dict[str, str]]
) -> None:
    async def silent(_message: nats.aio.msg.Msg) -> None:
        return

    async with run_services(other_bus, RECALL) as ungated:
        client = await nats.connect(other_bus.nats_url)
        await client.subscribe("gate.screen", cb=silent)
        await client.flush()
        reply = await ungated.recall(filled[0], "cannot find module fast-glob")
        await client.close()
    assert (reply.items, reply.reason) == ([], "gate")


async def test_a_stored_lesson_that_a_new_pattern_matches_is_dropped_and_reported_once(
    apart: CommonSettings, repository: str
) -> None:
    async with run_services(apart, GATE, WRITER) as installation:
        event = await installation.publish(ci_run(repository, LOGS["compiler"]))
        pattern = {"label": "test.strlcpy", "source": "strlcpy", "must_match": ["strlcpy"], "must_not_match": ["x"]}
        async with installation.engine.begin() as connection:
            await connection.execute(sa.insert(gate_patterns).values(**pattern, is_built_in=False))
    lesson_id = str(event.item_ids[0])
    async with run_services(apart, GATE, RECALL) as stricter:
        replies = [await stricter.recall(repository, "implicit declaration strlcpy") for _ in range(2)]
        explained = await stricter.memory.explain(lesson_id, repository=repository)
        await stricter.facts("recall_dropped", ids=[lesson_id])
        told = [fact async for fact in _told(stricter, "recall_dropped")]
    assert [(reply.items, reply.dropped) for reply in replies] == [([], 1)] * 2
    assert [fact["ids"] for fact in told] == [[lesson_id]]
    assert told[0]["patterns"] == ["test.strlcpy"]
    assert told[0]["security"] == "MEMORY_RECALL_DROPPED"
    assert explained.lesson is not None
    assert explained.lesson.summary == MATCHED_NOTE


async def _told(installation: Installation, kind: str) -> AsyncIterator[dict[str, object]]:
    """The facts of a kind on this bus so far."""
    client = await nats.connect(installation.settings.nats_url)
    stream = client.jetstream()
    last = (await stream.stream_info("EVENTS")).state.last_seq
    for sequence in range(1, last + 1):
        message = await stream.get_msg("EVENTS", sequence, direct=True)
        if message.subject == f"memory.event.{kind}":
            yield json.loads(message.data or b"{}")
    await client.close()


async def test_without_postgres_recall_answers_empty_and_says_store(
    other_bus: CommonSettings, installation: Installation, filled: tuple[str, dict[str, str]]
) -> None:
    async with run_services(other_bus, GATE, RECALL) as blind:
        async with installation.engine.begin() as connection:
            # A lock that nothing gets past stands for a database that hangs.
            await connection.execute(sa.text("lock table memory_vectors in access exclusive mode"))
            reply = await blind.recall(filled[0], "cannot find module fast-glob")
        again = await blind.recall(filled[0], "cannot find module fast-glob")
    assert (reply.items, reply.reason) == ([], "store")
    assert again.items, "recall comes back with the database"


async def test_the_deadline_is_kept(
    other_bus: CommonSettings, installation: Installation, filled: tuple[str, dict[str, str]]
) -> None:
    body = json.dumps({"repository": filled[0], "query": "fast-glob", "deadline_ms": 50}).encode()
    async with run_services(other_bus, GATE, RECALL), installation.engine.begin() as connection:
        await connection.execute(sa.text("lock table memory_vectors in access exclusive mode"))
        reply = await raw_answer(other_bus.nats_url, "recall.request", body)
    assert (reply["items"], reply["reason"]) == ([], "deadline")


# --- what administrators set -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Administered:
    """Gate and recall that keep no settings, and a tenant with six lessons, whose repository a team owns."""

    services: Installation
    memory: Lorebus
    tenant: str
    repository: str
    ids: dict[str, str]
    settings: AdministeredSettings

    async def set(self, name: str, value: object, place: Place = PLATFORM) -> None:
        await self.settings.set(name, value, tenant=self.tenant, actor="tests", place=place)

    async def recall(self, query: str = "error", **options: Any) -> list[str]:
        """The names of what came back."""
        names = {id_: name for name, id_ in self.ids.items()}
        asked = {"similarity_min": 0} | options
        reply = await self.memory.recall(query, repository=self.repository, deadline_seconds=5, **asked)
        assert not reply.degraded
        return [names[item.id] for item in reply.items]

    async def age(self, *names: str, days: int = 100) -> None:
        """Makes these lessons so old."""
        ids = [UUID(self.ids[name]) for name in names]
        async with self.services.engine.begin() as connection:
            for table, key in ((memory_items, memory_items.c.id), (memory_vectors, memory_vectors.c.item_id)):
                older = sa.func.now() - timedelta(days=days)
                await connection.execute(sa.update(table).where(key.in_(ids)).values(created_at=older))


@pytest.fixture
async def administered(
    other_bus: CommonSettings, installation: Installation, repository: str
) -> AsyncIterator[Administered]:
    tenant = f"t-{uuid4().hex[:12]}"
    async with Lorebus(installation.settings.nats_url, tenant) as publisher:
        ids: dict[str, str] = {}
        for name, log in LOGS.items():
            event = await installation.publish(ci_run(repository, log), publisher)
            ids[name] = str(event.item_ids[0])
    async with installation.engine.begin() as connection:
        owned = sa.update(scopes).where(scopes.c.tenant == tenant).values(team_id="payments", org_id="acme")
        await connection.execute(owned)
    uncached = other_bus.model_copy(update={"settings_cache_seconds": 0})
    async with run_services(uncached, GATE, RECALL) as services, Lorebus(other_bus.nats_url, tenant) as memory:
        settings = AdministeredSettings(services.engine)
        yield Administered(services, memory, tenant, repository, ids, settings)


AGE = "memory.lessonMaxAgeDays"


async def test_an_aged_lesson_is_left_out_and_comes_back_when_the_setting_is_raised_or_cleared(
    administered: Administered,
) -> None:
    await administered.age("module", days=100)
    assert "module" in await administered.recall("cannot find module fast-glob")
    await administered.set(AGE, 99)
    assert "module" not in await administered.recall("cannot find module fast-glob")
    await administered.set(AGE, 101)
    assert "module" in await administered.recall("cannot find module fast-glob")
    await administered.set(AGE, 99)
    await administered.settings.unset(AGE, tenant=administered.tenant, actor="tests")
    assert "module" in await administered.recall("cannot find module fast-glob")


async def test_search_leaves_an_aged_lesson_out_and_explain_shows_it(administered: Administered) -> None:
    await administered.age("module")
    await administered.set(AGE, 30)
    query, repository = "cannot find module fast-glob", administered.repository
    found = await administered.memory.search(query, repository=repository, deadline_seconds=5)
    explained = await administered.memory.explain(administered.ids["module"], repository=repository, deadline_seconds=5)
    assert administered.ids["module"] not in [lesson.lesson_id for lesson in found.lessons]
    assert explained.lesson is not None
    assert explained.lesson.status == "active"


async def test_aged_lessons_near_the_question_take_no_places_of_fresh_ones(
    administered: Administered, installation: Installation
) -> None:
    """Ten copies of the nearest lesson, all too old, beside five fresh ones."""
    nearest = administered.ids["module"]
    async with installation.engine.begin() as connection:
        key = {"key": administered.repository, "template": nearest, "count": 10}
        await connection.execute(sa.text(CROWD), key)
        together = sa.select(memory_items.c.id).where(memory_items.c.summary == _summary_of(nearest))
        for table, id_ in ((memory_items, memory_items.c.id), (memory_vectors, memory_vectors.c.item_id)):
            older = sa.update(table).where(id_.in_(together)).values(created_at=sa.func.now() - timedelta(days=100))
            await connection.execute(older)
    query = "cannot find module fast-glob"
    asked = {"repository": administered.repository, "similarity_min": 0, "limit": 5, "deadline_seconds": 5}
    crowded = await administered.memory.recall(query, **asked)
    assert len({item.summary for item in crowded.items}) == 5, "copies take one place"
    await administered.set(AGE, 30)
    assert set(await administered.recall(query, limit=5)) == set(LOGS) - {"module"}


def _summary_of(lesson_id: str) -> sa.ScalarSelect[str]:
    return sa.select(memory_items.c.summary).where(memory_items.c.id == UUID(lesson_id)).scalar_subquery()


@pytest.mark.parametrize(
    ("place", "counts"),
    [
        (Place("team", "payments"), True),
        (Place("organization", "acme"), True),
        (Place("team", "search"), False),
        (Place("organization", "else"), False),
    ],
    ids=str,
)
async def test_an_age_counts_for_repositories_of_its_team_or_organization_alone(
    administered: Administered, place: Place, counts: bool
) -> None:
    await administered.age("module")
    await administered.set(AGE, 30, place)
    found = await administered.recall("cannot find module fast-glob", team_id="search", org_id="else")
    assert ("module" not in found) == counts


async def test_a_teams_age_goes_before_that_of_the_platform(administered: Administered) -> None:
    await administered.age("module")
    await administered.set(AGE, 30)
    await administered.set(AGE, 0, Place("team", "payments"))
    assert "module" in await administered.recall("cannot find module fast-glob")


async def test_a_repository_that_changes_hands_ages_by_its_new_owner(administered: Administered) -> None:
    await administered.age("module")
    await administered.set(AGE, 30, Place("team", "search"))
    assert "module" in await administered.recall("cannot find module fast-glob")
    async with administered.services.engine.begin() as connection:
        moved = sa.update(scopes).where(scopes.c.tenant == administered.tenant).values(team_id="search")
        await connection.execute(moved)
    assert "module" not in await administered.recall("cannot find module fast-glob")


async def test_the_number_of_lessons_is_what_is_set_where_the_question_gives_none(administered: Administered) -> None:
    assert len(await administered.recall()) == 5
    await administered.set("lessonRetrievalLimit", 2)
    assert len(await administered.recall()) == 2
    assert len(await administered.recall(limit=6)) == 6


async def test_the_similarity_is_what_is_set_where_the_question_gives_none(administered: Administered) -> None:
    unrelated = "translate the privacy policy page into Portuguese"
    assert await administered.recall(unrelated, similarity_min=None) == []
    await administered.set("lessonRetrievalThreshold", 0)
    assert len(await administered.recall(unrelated, similarity_min=None)) == 5
    assert await administered.recall(unrelated, similarity_min=0.7) == []


async def test_settings_that_cannot_be_read_cost_no_recall_and_no_lesson_is_too_old(
    apart: CommonSettings, repository: str, open_folder: Path
) -> None:
    async with run_services(apart, GATE, WRITER, RECALL) as installation:
        event = await installation.publish(ci_run(repository, LOGS["module"]))
        settings = AdministeredSettings(installation.engine)
        await settings.set(AGE, 1, tenant="default", actor="tests")
        async with installation.engine.begin() as connection:
            older = {"created_at": sa.func.now() - timedelta(days=100)}
            await connection.execute(sa.update(memory_vectors).values(older))
            await connection.execute(sa.text("alter table settings rename to settings_away"))
        reply = await installation.recall(repository, "cannot find module fast-glob")
    assert [item.id for item in reply.items] == [str(event.item_ids[0])]
    assert not reply.degraded
    assert '"settings.unreadable"' in (open_folder / LOG_FILE).read_text()


async def test_settings_that_hang_cost_no_recall(apart: CommonSettings, repository: str) -> None:
    async with run_services(apart, GATE, WRITER, RECALL) as installation:
        await installation.publish(ci_run(repository, LOGS["module"]))
        async with installation.engine.begin() as connection:
            await connection.execute(sa.text("lock table settings in access exclusive mode"))
            reply = await installation.recall(repository, "cannot find module fast-glob")
    assert len(reply.items) == 1


# --- the statement ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
async def model(installation: Installation) -> ServingModel:
    return await open_model(installation.engine, create_embedder("wordllama"))


@pytest.fixture(scope="module")
async def pool(installation: Installation) -> AsyncIterator[asyncpg.Pool]:
    pool = await create_pool(installation.settings.database_url, "tests", connections_max=2)
    yield pool
    await pool.close()


@pytest.fixture(scope="module")
def words() -> Frequencies:
    return count_documents(tokenize(text) for text in background_texts())


async def question(model: ServingModel, words: Frequencies, repository: str, text: str, setting: float) -> Question:
    query = prepare_query(text, words, repository)
    [vector] = await model.embedder.embed([query.embed_text])
    background = measure_background(vector, model.background)
    return Question(
        scope=ScopeName("default", "swe-lessons", repository),
        model_id=model.id,
        vector=vector,
        terms=query.terms,
        terms_known=[words.documents.get(term, 0) for term in query.terms],
        background_size=words.size,
        created_after=datetime(1, 1, 1, tzinfo=UTC),
        background=background,
        bars=bars_of(setting, background),
        limit=5,
        fingerprints=query.fingerprints,
    )


class CountedPool:
    """Passes statements on and keeps them."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self.statements: list[str] = []

    async def fetch(self, statement: str, *values: object) -> object:
        self.statements.append(statement)
        return await self._pool.fetch(statement, *values)

    async def fetchrow(self, statement: str, *values: object) -> object:
        self.statements.append(statement)
        return await self._pool.fetchrow(statement, *values)


@pytest.mark.parametrize(("cache_seconds", "scope_looks"), [(60, 1), (0, 4)])
async def test_a_recall_of_a_scope_that_is_cached_is_one_statement(
    installation: Installation,
    filled: tuple[str, dict[str, str]],
    model: ServingModel,
    words: Frequencies,
    pool: asyncpg.Pool,
    cache_seconds: float,
    scope_looks: int,
) -> None:
    asked = await question(model, words, filled[0], "error", 0)
    counted = CountedPool(pool)
    store = RecallStore(installation.engine, cast("asyncpg.Pool", counted), 5, cache_seconds=cache_seconds)
    for _ in range(2):
        assert await store.find_scope(asked.scope) is not None
        assert len(await store.find_fitting(asked)) == 5
    assert counted.statements.count(RECALL_STATEMENT) == 2
    assert counted.statements.count(FIND_SCOPE) == scope_looks


async def ranked_by_domain(
    installation: Installation, repository: str, asked: Question, words: Frequencies
) -> list[Ranked[UUID]]:
    items = await installation.rows(
        sa.select(memory_items.c.id, memory_items.c.terms, memory_vectors.c.embedding)
        .join(memory_vectors)
        .join(scopes, scopes.c.id == memory_items.c.scope_id)
        .where(scopes.c.key == repository, memory_vectors.c.active)
    )
    known = sa.select(memory_fingerprints.c.item_id).where(memory_fingerprints.c.fingerprint.in_(asked.fingerprints))
    same_failure = {row["item_id"] for row in await installation.rows(known)}
    candidates = [
        Candidate(
            row["id"],
            float(np.dot(row["embedding"].to_numpy().astype(np.float32), asked.vector)),
            frozenset(row["terms"]),
            len(row["terms"]),
            same_failure=row["id"] in same_failure,
        )
        for row in items
    ]
    weights = weigh_terms(asked.terms, count_documents(row["terms"] for row in items), words)
    return rank_items(candidates, weights, asked.background)


@pytest.mark.parametrize("text", [*LOGS.values(), "why did the build of the parser fail", "leap year dates are wrong"])
@pytest.mark.parametrize("setting", [0, 0.5, 0.7])
async def test_the_statement_ranks_and_passes_as_the_domain_does(
    installation: Installation,
    filled: tuple[str, dict[str, str]],
    model: ServingModel,
    words: Frequencies,
    pool: asyncpg.Pool,
    text: str,
    setting: float,
) -> None:
    asked = await question(model, words, filled[0], text, setting)
    ranked = await ranked_by_domain(installation, filled[0], asked, words)
    expected = recall_items(ranked, gate_of_setting(setting), 5)
    found = await RecallStore(installation.engine, pool, 5).find_fitting(asked)
    assert [item.id for item in found] == [item.key for item in expected]
    assert [item.same_failure for item in found] == [item.same_failure for item in expected]
    assert [item.rank for item in found] == pytest.approx([item.rank for item in expected], abs=5e-2)
    assert [item.coverage for item in found] == pytest.approx([item.coverage for item in expected])
    assert [item.similarity for item in found] == pytest.approx([item.cosine for item in expected], abs=2e-3)


async def test_in_a_larger_scope_an_item_has_to_stand_out_further(
    installation: Installation, repository: str, model: ServingModel, words: Frequencies, pool: asyncpg.Pool
) -> None:
    size = 120
    numbers = [f"The nightly job {n} of the search cluster rebuilds shard {n} from its snapshot." for n in range(size)]
    await store_rows(installation.engine, model, repository, numbers)
    asked = await question(model, words, repository, "which job of the search service restores a backup", 0.7)
    ranked = await ranked_by_domain(installation, repository, asked, words)
    found = await RecallStore(installation.engine, pool, 5).find_fitting(replace(asked, limit=size))
    passing = {
        setting_size: recall_items(ranked, gate_of_setting(0.7, setting_size), size) for setting_size in (0, size)
    }
    assert {item.id for item in found} == {item.key for item in passing[size]}
    assert len(passing[size]) < len(passing[0])


async def test_what_is_older_than_the_age_limit_takes_no_place(
    installation: Installation,
    filled: tuple[str, dict[str, str]],
    model: ServingModel,
    words: Frequencies,
    pool: asyncpg.Pool,
) -> None:
    asked = await question(model, words, filled[0], "error", 0)
    later = replace(asked, created_after=datetime.now(UTC) + timedelta(hours=1))
    store = RecallStore(installation.engine, pool, 5)
    assert len(await store.find_fitting(asked)) == 5
    assert await store.find_fitting(later) == []


async def test_a_crowded_neighbour_does_not_hide_a_small_scope_and_the_scan_stays_index_only(
    installation: Installation, repository: str, model: ServingModel, words: Frequencies, pool: asyncpg.Pool
) -> None:
    """The seed's stated limitation: here the plan is an exact, index-only scan of the scope alone."""
    event = await installation.publish(ci_run(repository, LOGS["compiler"]))
    asked = await question(model, words, repository, LOGS["compiler"], 0.7)
    crowd = f"{repository}-crowd"
    template = str(event.item_ids[0])
    async with installation.engine.begin() as connection:
        await connection.execute(sa.insert(scopes).values(tenant="default", kind="swe-lessons", key=crowd))
        await connection.execute(sa.text(CROWD), {"key": crowd, "template": template, "count": 2_000})
    async with installation.engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(sa.text("vacuum analyze memory_vectors"))
        driver = (await connection.get_raw_connection()).driver_connection
        scope_id = await driver.fetchval("select id from scopes where key = $1", repository)
        values = statement_values(asked, scope_id)
        plan = "\n".join(row[0] for row in await driver.fetch(f"explain (costs off) {RECALL_STATEMENT}", *values))
    found = await RecallStore(installation.engine, pool, 5).find_fitting(asked)
    assert [str(item.id) for item in found] == [template]
    assert "Index Only Scan using memory_vectors_scan" in plan, plan
    assert "Seq Scan on memory_vectors" not in plan


CROWD = """
with crowd as (
    insert into memory_items (id, tenant, scope_id, summary, rationale, origin_tier, source_event_id, text_sha256,
                              pattern_set, evidence_at)
    select gen_random_uuid(), i.tenant, s.id, i.summary, i.rationale, i.origin_tier, 'crowd-' || :key || n,
           i.text_sha256, i.pattern_set, i.evidence_at
    from memory_items i, scopes s, generate_series(1, :count) n
    where i.id = cast(:template as uuid) and s.key = :key
    returning id, scope_id, created_at
)
insert into memory_vectors (item_id, model_id, scope_id, active, created_at, terms_total, origin_tier, embedding)
select c.id, v.model_id, c.scope_id, true, c.created_at, v.terms_total, v.origin_tier, v.embedding
from crowd c, memory_vectors v where v.item_id = cast(:template as uuid)
"""
