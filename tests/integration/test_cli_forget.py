"""`lorebus forget` and `lorebus vacuum` on servers of their own, whose files the proof may search."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from conftest import LEASE_SECONDS, Installation, ci_run, run_services
from forgettable import find, merge, save
from typer.testing import CliRunner, Result

from cli.main import app
from cli.vacuuming import TABLES, Table, choose_rewrite
from libs.common.provision import provision
from libs.common.schema import audit, memory_items
from libs.common.settings import CommonSettings
from libs.embedded.stack import EmbeddedStack
from services.consolidator.app import PROGRAM as CONSOLIDATOR
from services.gate.app import PROGRAM as GATE
from services.recall.app import PROGRAM as RECALL
from services.writer.app import PROGRAM as WRITER

LOG = "Error: Cannot find module '{marker}'\nnpm ERR! code ELIFECYCLE\n"


@dataclass(frozen=True)
class Desk:
    """Somebody at a terminal, beside a `lorebus up`."""

    data: Path

    async def lorebus(self, *arguments: str) -> Result:
        runner = CliRunner(env={"LOREBUS_DATA": str(self.data), "COLUMNS": "300"})
        return await asyncio.to_thread(runner.invoke, app, arguments)

    async def forget(self, *arguments: str) -> tuple[Result, dict[str, Any]]:
        done = await self.lorebus("forget", "--json", *arguments)
        return done, json.loads(done.stdout or "{}")


@pytest.fixture(scope="module")
async def memory(open_folder: Path, servers: CommonSettings) -> AsyncIterator[Installation]:
    data = open_folder / "desk"
    async with EmbeddedStack(data, durable=False) as stack:
        settings = CommonSettings(database_url=stack.database_url, nats_url=stack.nats_url, lease_seconds=LEASE_SECONDS)
        await provision(settings)
        endpoints = {"nats": stack.nats_url, "database": stack.database_url}
        (data / "endpoints.json").write_text(json.dumps(endpoints))
        async with run_services(settings, GATE, WRITER, RECALL, CONSOLIDATOR) as installation:
            yield installation


@pytest.fixture
def desk(open_folder: Path) -> Desk:
    return Desk(open_folder / "desk")


async def test_forget_tells_what_went_and_what_came_back(memory: Installation, desk: Desk, repository: str) -> None:
    first, second = [await save(memory, repository, f"Parser flag {n} of {uuid4().hex}.") for n in range(2)]
    merged = await merge(memory, first, second)
    done, told = await desk.forget(str(first), "--reason", "asked for")
    assert done.exit_code == 0, done.stderr
    assert (told["deleted"], told["restored"]) == ([str(first), str(merged)], [str(second)])
    [row] = await memory.rows(sa.select(audit).filter_by(entity_id=str(first)))
    assert (row["actor"].startswith("cli"), row["after"]["reason"]) == (True, "asked for")


async def test_the_proof_looks_everywhere_and_finds_nothing(memory: Installation, desk: Desk, repository: str) -> None:
    event = await memory.publish(ci_run(repository, LOG.format(marker=f"zanzi{uuid4().hex}")))
    note = await save(memory, repository, f'The "{uuid4().hex}" flag,\nand ünïcode.', rationale=f"Seen {uuid4().hex}.")
    done, told = await desk.forget(str(event.item_ids[0]), str(note), "--prove", "--yes")
    assert done.exit_code == 0, told
    assert [probe for probe in told["proof"] if probe["found"] or probe["fault"]] == []
    assert told["proved"] is True
    assert [probe["where"] for probe in told["proof"]] == [
        "messages still to be erased",
        "memories and what was merged from them",
        "every text column of every table",
        "recall and search by the old text",
        "explain",
        "messages by their numbers",
        "every message of every stream",
        "bytes of the files in nats/store",
        "bytes of the files in logs",
    ]


async def test_the_proof_finds_a_copy_in_a_table_a_stream_and_a_file(
    memory: Installation, desk: Desk, repository: str
) -> None:
    """Planted on purpose: a memory that says the same, a note of it on its way, a log that repeats it."""
    text = f'The "{uuid4().hex}" flag of the parser.'
    gone, twin = [await save(memory, repository, text) for _ in range(2)]
    published = await memory.memory.note(repository=repository, writer="shellStep", summary=text)
    await memory.end_of(published.event_id)
    log = desk.data / "logs" / "planted.log"
    log.write_text(json.dumps({"event": text}))
    done, told = await desk.forget(str(gone), "--prove")
    log.unlink()
    found = {probe["where"]: set(probe["found"]) for probe in told["proof"] if probe["found"]}
    assert (done.exit_code, told["proved"]) == (1, False)
    assert "memory_items.summary" in found["every text column of every table"]
    assert found["every message of every stream"] == {"CTL"}
    assert found["bytes of the files in logs"] == {"planted.log"}
    assert any(name.startswith("jetstream/") for name in found["bytes of the files in nats/store"])
    assert "recall and search by the old text" not in found, "what was forgotten is not what is recalled"
    assert set(await find(memory, gone, twin)) == {twin}


async def test_a_run_is_forgotten_by_its_event_id(memory: Installation, desk: Desk, repository: str) -> None:
    event = await memory.publish(ci_run(repository, LOG.format(marker="left-pad")))
    _, told = await desk.forget("--event", event.event_id)
    assert told["deleted"] == [str(id_) for id_ in event.item_ids]


async def test_a_person_of_whom_nothing_is_known_is_no_error(memory: Installation, desk: Desk) -> None:
    done, told = await desk.forget("--person", f"U{uuid4().hex}")
    assert (done.exit_code, told["deleted"], told["restored"], told["unattributed"]) == (0, [], [], 0)


async def test_people_are_told_until_when_bytes_may_lie_in_the_database(
    memory: Installation, desk: Desk, repository: str
) -> None:
    note = await save(memory, repository, f"The flag {uuid4().hex}.")
    done = await desk.lorebus("forget", str(note))
    assert (done.exit_code, f"1 forgotten: {note}" in done.stdout) == (0, True)
    assert "leave the database's files by" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [[], ["--person", "U1", "--session", "s"], ["not-an-id"], [str(uuid4()), "--person", "U1"]],
    ids=["nothing", "two kinds", "no id", "ids and a person"],
)
async def test_wrong_usage_of_forget_ends_with_2(desk: Desk, arguments: list[str]) -> None:
    assert (await desk.lorebus("forget", *arguments)).exit_code == 2


def test_somebody_at_a_terminal_is_asked_and_may_say_no() -> None:
    terminal, keyboard = pty.openpty()
    command = [sys.executable, "-m", "cli", "forget", str(uuid4()), "--nats-url", "nats://127.0.0.1:1"]
    process = subprocess.Popen(command, stdin=keyboard, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    os.write(terminal, b"n\n")
    _, said = process.communicate(timeout=60)
    os.close(terminal)
    os.close(keyboard)
    assert (process.returncode, "for good?" in said, "Nothing was forgotten" in said) == (1, True, True)


async def test_without_a_consolidator_the_command_waits_on_the_bus_and_says_so(apart: CommonSettings) -> None:
    environment = {"LOREBUS_NATS_URL": apart.nats_url, "LOREBUS_DATABASE_URL": apart.database_url}
    arguments = ["forget", str(uuid4()), "--wait-seconds", "1"]
    done = await asyncio.to_thread(CliRunner(env=environment).invoke, app, arguments)
    assert (done.exit_code, "does a consolidator run?" in done.stderr) == (1, True)


async def test_vacuum_rewrites_what_is_asked_for_and_the_bytes_leave_the_files(
    memory: Installation, desk: Desk, repository: str
) -> None:
    marker = f"zanzi{uuid4().hex}"
    note = await save(memory, repository, f"The {marker} of the parser.")
    path = await table_file(memory, desk)
    assert marker.encode() in path.read_bytes()
    await desk.forget(str(note))
    done = await desk.lorebus("vacuum", "--rewrite", "--json")
    assert done.exit_code == 0, done.stderr
    assert [(row["table"], row["rewritten"]) for row in json.loads(done.stdout)] == [
        (name, "asked for") for name in TABLES
    ]
    after = await table_file(memory, desk)
    assert (after != path, marker.encode() in after.read_bytes()) == (True, False)
    assert [row["action"] for row in await memory.rows(sa.select(audit).filter_by(action="memory.rewrite"))]


async def table_file(memory: Installation, desk: Desk) -> Path:
    """Where Postgres keeps the memories, with all that it has in memory written out."""
    async with memory.engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(sa.text("checkpoint"))
        [name] = (await connection.execute(sa.select(sa.func.pg_relation_filepath(memory_items.name)))).scalars()
    [path] = [path for path in (desk.data / "postgres").rglob(Path(name).name) if str(path).endswith(name)]
    return path


def days(count: float) -> timedelta:
    return timedelta(days=count)


@pytest.mark.parametrize(
    ("dead", "oldest", "why"),
    [(0, None, None), (20, None, None), (30, None, "dead share"), (0, days(14), None), (0, days(15), "promise")],
)
def test_a_table_is_rewritten_when_a_fifth_is_dead_or_half_of_the_promise_has_passed(
    dead: int, oldest: timedelta | None, why: str | None
) -> None:
    table = Table("memory_items", live=100 - dead, dead=dead)
    assert choose_rewrite(table, is_asked=False, oldest_forgotten=oldest, promise=days(30)) == why


def test_every_table_that_holds_words_of_memories_is_vacuumed() -> None:
    assert {"memory_items", "memory_vectors", "memory_terms", "scope_terms", "dead_letters"} <= set(TABLES)


async def test_ids_of_what_was_forgotten_are_all_that_is_left(
    memory: Installation, desk: Desk, repository: str
) -> None:
    note = await save(memory, repository, f"The flag {uuid4().hex}.")
    await desk.forget(str(note))
    explained = await desk.lorebus("explain", str(note))
    assert (explained.exit_code, await find(memory, UUID(str(note)))) == (1, {})
