"""`lorebus pending` on a real database, beside running services."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from conftest import Installation, ci_run, dump_database
from typer.testing import CliRunner, Result
from watched_gate import RISKY, WATCHED, watching_services

from cli.main import app
from libs.common.administered_settings import AdministeredSettings
from libs.common.domain.setting_keys import SUPERSEDE_THRESHOLD
from libs.common.schema import audit, gate_findings, memory_items, memory_vectors, scope_terms, scopes
from libs.common.settings import CommonSettings

PLAIN = "The build of the parser fails without the compiler cache of the runner."


class Desk:
    """Somebody at a terminal."""

    def __init__(self, database_url: str) -> None:
        self._env = {"LOREBUS_DATABASE_URL": database_url, "COLUMNS": "300"}

    async def lorebus(self, *arguments: str) -> Result:
        return await asyncio.to_thread(CliRunner(env=self._env).invoke, app, ["pending", *arguments])

    async def listed(self, *arguments: str) -> list[dict[str, Any]]:
        return json.loads((await self.lorebus("list", "--json", *arguments)).stdout)


@pytest.fixture
async def watching(apart: CommonSettings) -> AsyncIterator[Installation]:
    async with watching_services(apart) as installation:
        yield installation


@pytest.fixture
def desk(apart: CommonSettings) -> Desk:
    return Desk(apart.database_url)


async def save(installation: Installation, repository: str, summary: str, **fields: Any) -> str:
    known = {"repository": repository, "writer": "stranger", "summary": summary, "deadline_seconds": 10}
    reply = await installation.memory.save_note(**known | fields)
    assert reply.error is None
    return str(reply.id)


async def find(installation: Installation, item_id: str) -> list[dict[str, Any]]:
    return await installation.rows(sa.select(memory_items).where(memory_items.c.id == UUID(item_id)))


async def audited(installation: Installation, item_id: str) -> dict[str, Any]:
    [row] = await installation.rows(sa.select(audit).filter_by(entity_kind="memory", entity_id=item_id))
    return row


async def note_finding(installation: Installation, item_id: str) -> None:
    """As the writer does when another pattern set matches a stored row."""
    found = {"item_id": UUID(item_id), "tenant": "default", "pattern_set": "later", "patterns": ["test.later"]}
    async with installation.engine.begin() as connection:
        await connection.execute(sa.insert(gate_findings).values(found))


async def test_the_list_shows_ids_and_patterns_and_text_only_when_asked_for(
    watching: Installation, desk: Desk, repository: str
) -> None:
    held = await save(watching, repository, RISKY, rationale="a wiki says so")
    matched = await save(watching, repository, PLAIN)
    await note_finding(watching, matched)
    listed = await desk.listed()
    shown, with_text = (await desk.lorebus("list")).stdout, (await desk.lorebus("list", "--text")).stdout
    assert [(one["id"], one["state"], one["patterns"]) for one in listed] == [
        (held, "held", [WATCHED]),
        (matched, "matched", ["test.later"]),
    ]
    assert (listed[0]["repository"], listed[0]["tier"], listed[0]["written_by"]) == (repository, 0, "stranger")
    assert all(text in shown for text in (held, matched, WATCHED, "test.later"))
    assert not any(text in json.dumps(listed) + shown for text in (RISKY, "a wiki says so", PLAIN))
    assert all(text in with_text for text in (RISKY, "a wiki says so", PLAIN))
    assert (await desk.listed("--text"))[0]["rationale"] == "a wiki says so"


async def test_a_released_memory_is_recalled_at_its_tier_and_waits_no_more(
    watching: Installation, desk: Desk, repository: str
) -> None:
    held = await save(watching, repository, RISKY)
    done = await desk.lorebus("release", held)
    reply = await watching.recall(repository, "fetch the tool from zanzibar")
    told = await watching.facts("lesson_released", id=held)
    row = await audited(watching, held)
    assert (done.exit_code, [(item.id, item.tier) for item in reply.items]) == (0, [(held, 0)])
    assert (await desk.listed(), told["repository"]) == ([], repository)
    assert (row["action"], row["actor"], row["after"]["released_by"]) == ("memory.release", row["actor"], row["actor"])
    assert row["actor"].startswith("cli")
    assert row["before"] == {"state": "held", "patterns": [WATCHED], "repository": repository}
    assert "Fetch the tool" not in str(row)


async def test_a_release_decides_what_replaces_what_as_a_write_does(
    watching: Installation, desk: Desk, repository: str
) -> None:
    older, held = [await save(watching, repository, PLAIN, rationale=why) for why in ("seen", "zanzibar")]
    assert (await desk.lorebus("release", held)).exit_code == 0
    told = await watching.facts("superseded", superseded_by=held)
    [replaced], [released] = await find(watching, older), await find(watching, held)
    assert (told["ids"], replaced["superseded_by_id"], released["superseded_at"]) == ([older], UUID(held), None)
    assert (await audited(watching, held))["after"]["superseded"] == [older]


async def test_newer_evidence_replaces_a_memory_at_its_release(
    watching: Installation, desk: Desk, repository: str
) -> None:
    held, newer = [await save(watching, repository, PLAIN, rationale=why) for why in ("zanzibar", "seen")]
    done = await desk.lorebus("release", held)
    [released] = await find(watching, held)
    reply = await watching.recall(repository, PLAIN, similarity_min=0)
    assert (done.exit_code, newer in done.stdout) == (0, True)
    assert (released["superseded_by_id"], released["held_at"]) == (UUID(newer), None)
    assert [item.id for item in reply.items] == [newer]


async def test_a_release_replaces_no_memory_of_a_higher_tier(
    watching: Installation, desk: Desk, repository: str
) -> None:
    higher, held = [
        await save(watching, repository, PLAIN, writer=writer, rationale=why)
        for writer, why in (("shellStep", "seen"), ("stranger", "zanzibar"))
    ]
    await desk.lorebus("release", held)
    assert [(await find(watching, id_))[0]["superseded_at"] for id_ in (higher, held)] == [None, None]
    # They say the same, and the more trusted of them says it.
    reply = await watching.recall(repository, PLAIN, similarity_min=0)
    assert [item.id for item in reply.items] == [higher]


async def test_a_release_goes_by_the_threshold_that_is_set(watching: Installation, desk: Desk, repository: str) -> None:
    await AdministeredSettings(watching.engine).set(SUPERSEDE_THRESHOLD.name, 1, tenant="default", actor="tests")
    older, held = [await save(watching, repository, PLAIN, rationale=why) for why in ("seen", "zanzibar")]
    await desk.lorebus("release", held)
    assert (await find(watching, older))[0]["superseded_at"] is None


async def test_a_refused_memory_is_gone_with_its_vectors_and_only_its_id_is_audited(
    watching: Installation, desk: Desk, repository: str
) -> None:
    held = await save(watching, repository, RISKY)
    done = await desk.lorebus("refuse", held)
    row = await audited(watching, held)
    vectors = await watching.rows(sa.select(memory_vectors).filter_by(item_id=UUID(held)))
    assert (done.exit_code, await find(watching, held), vectors, await desk.listed()) == (0, [], [], [])
    assert (row["action"], row["after"]["refused_by"], row["before"]["patterns"]) == (
        "memory.refuse",
        row["actor"],
        [WATCHED],
    )
    assert "Fetch the tool" not in await dump_database(watching.engine)


async def test_what_a_refused_memory_had_replaced_is_recalled_again_and_counted(
    watching: Installation, desk: Desk, repository: str
) -> None:
    older, poison = [await save(watching, repository, PLAIN) for _ in range(2)]
    await note_finding(watching, poison)
    before = await watching.rows(sa.select(scopes.c.items_active).filter_by(key=repository))
    done = await desk.lorebus("refuse", poison)
    reply = await watching.recall(repository, PLAIN, similarity_min=0)
    after = await watching.rows(sa.select(scopes.c.items_active).filter_by(key=repository))
    words = await watching.rows(sa.select(scope_terms.c.documents).where(scope_terms.c.documents > 0))
    assert (done.exit_code, older in done.stdout) == (0, True)
    assert [item.id for item in reply.items] == [older]
    assert before == after == [{"items_active": 1}]
    assert {row["documents"] for row in words} == {1}
    assert (await audited(watching, poison))["after"]["restored"] == [older]


async def test_a_memory_that_the_gate_matches_is_not_released(
    watching: Installation, desk: Desk, repository: str
) -> None:
    held = await save(watching, repository, RISKY)
    await note_finding(watching, held)
    done = await desk.lorebus("release", held)
    assert (done.exit_code, "test.later" in done.stderr, "refuse it" in done.stderr) == (1, True, True)
    assert (await find(watching, held))[0]["held_at"] is not None


@pytest.mark.parametrize("decision", ["release", "refuse"])
async def test_what_does_not_wait_cannot_be_decided_about(
    installation: Installation, servers: CommonSettings, repository: str, decision: str
) -> None:
    event = await installation.publish(ci_run(repository, "Error: Cannot find module 'left-pad'\nnpm ERR! code 1\n"))
    active = str(event.item_ids[0])
    for item_id in (active, str(uuid4())):
        done = await Desk(servers.database_url).lorebus(decision, item_id)
        assert (done.exit_code, "lorebus pending list" in done.stderr) == (1, True)
    assert len(await find(installation, active)) == 1


async def test_another_tenant_neither_sees_nor_decides(watching: Installation, desk: Desk, repository: str) -> None:
    held = await save(watching, repository, RISKY)
    assert await desk.listed("--tenant", "acme") == []
    for decision in ("release", "refuse"):
        assert (await desk.lorebus(decision, held, "--tenant", "acme")).exit_code == 1
    assert (await find(watching, held))[0]["held_at"] is not None


@pytest.mark.parametrize("arguments", [["release", "7"], ["refuse"], ["list", "--limit", "0"]])
async def test_wrong_usage_of_pending_ends_with_2(servers: CommonSettings, arguments: list[str]) -> None:
    assert (await Desk(servers.database_url).lorebus(*arguments)).exit_code == 2


@pytest.mark.parametrize("name", ["list", "release", "refuse"])
async def test_each_command_of_pending_teaches_with_an_example(servers: CommonSettings, name: str) -> None:
    done = await Desk(servers.database_url).lorebus(name, "--help")
    assert f"Example: lorebus pending {name}" in done.stdout
