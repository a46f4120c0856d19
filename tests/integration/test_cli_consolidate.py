"""`lorebus consolidate` on a running installation: what it shows, what it changes, how it ends."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import Result
from conftest import Installation, run_services
from mergeable import DOCS, UPLOAD, items_of, merged_of, save
from typer.testing import CliRunner

from cli.consolidating import Consolidation
from cli.main import app
from libs.common.schema import consolidation_schedules
from libs.common.settings import CommonSettings
from services.consolidator.app import PROGRAM as CONSOLIDATOR


@pytest.fixture(scope="module")
async def memory(installation: Installation, servers: CommonSettings) -> AsyncIterator[Installation]:
    async with run_services(servers, CONSOLIDATOR):
        yield installation


async def call(memory: Installation, tmp_path: Path, *arguments: str) -> Result:
    """The command has a loop of its own, so it runs in a thread."""
    env = {
        "LOREBUS_NATS_URL": memory.settings.nats_url,
        "LOREBUS_DATABASE_URL": memory.settings.database_url,
        "LOREBUS_TENANT": None,
        "LOREBUS_DATA": str(tmp_path),
    }
    return await asyncio.to_thread(CliRunner(env=env).invoke, app, ["consolidate", *arguments])


async def test_a_dry_run_shows_clusters_without_a_text_and_changes_nothing(
    memory: Installation, repository: str, tmp_path: Path
) -> None:
    ids = await save(memory, repository, [*UPLOAD, DOCS[0]])
    done = await call(memory, tmp_path, "-r", repository, "--dry-run", "--json")
    [found] = json.loads(done.stdout)
    [cluster] = found["clusters"]
    rows = await items_of(memory, repository)
    assert done.exit_code == 0
    assert (found["place"], found["memories"], found["clusters_found"]) == (repository, 4, 1)
    assert (set(cluster["ids"]), cluster["size"]) == (set(map(str, ids[:3])), 3)
    assert found["similarity_min"] <= cluster["similarity"] <= 1
    assert "libmagic" not in done.stdout
    assert (set(rows), {row["consolidated_at"] for row in rows.values()}) == (set(ids), {None})


async def test_a_dry_run_shows_first_words_only_where_they_are_asked_for(
    memory: Installation, repository: str, tmp_path: Path
) -> None:
    await save(memory, repository, UPLOAD)
    shy = await call(memory, tmp_path, "-r", repository, "--dry-run")
    told = await call(memory, tmp_path, "-r", repository, "--dry-run", "--text")
    assert "upload test" not in shy.stdout
    assert "The upload test fails on CI because libmagic is missing from the …" in told.stdout
    assert "install libmagic1" not in told.stdout
    assert "1 clusters among 3 memories" in shy.stdout


async def test_it_waits_for_the_end_and_says_what_came_of_it(
    memory: Installation, repository: str, tmp_path: Path
) -> None:
    await save(memory, repository, UPLOAD)
    done = await call(memory, tmp_path, "-r", repository, "--json")
    report = json.loads(done.stdout)
    assert (done.exit_code, report["open"], report["dead"]) == (0, [], [])
    assert report["done"] == [
        {"place": repository, "found": 1, "consolidated": 1, "sources": 3, "created": 1, "left": {}}
    ]
    assert len(await merged_of(memory, repository)) == 1


async def test_a_person_reads_a_table(memory: Installation, repository: str, tmp_path: Path) -> None:
    await save(memory, repository, UPLOAD)
    done = await call(memory, tmp_path, "-r", repository)
    assert done.exit_code == 0
    assert "3 memories became 1" in done.stdout
    assert repository in done.stdout


async def test_who_does_not_wait_is_told_the_request(memory: Installation, repository: str, tmp_path: Path) -> None:
    done = await call(memory, tmp_path, "-r", repository, "--wait-seconds", "0")
    assert done.exit_code == 0
    assert "is on the bus" in done.stdout


async def test_what_is_still_open_when_the_wait_ends_fails(
    other_bus: CommonSettings, memory: Installation, repository: str, tmp_path: Path
) -> None:
    env = {"LOREBUS_NATS_URL": other_bus.nats_url, "LOREBUS_DATA": str(tmp_path), "LOREBUS_TENANT": None}
    arguments = ["consolidate", "-r", repository, "--wait-seconds", "0.5", "--json"]
    done = await asyncio.to_thread(CliRunner(env=env).invoke, app, arguments)
    assert (done.exit_code, len(json.loads(done.stdout)["open"])) == (1, 1)


async def test_the_schedule_is_switched_for_one_repository(
    memory: Installation, repository: str, tmp_path: Path
) -> None:
    await save(memory, repository, UPLOAD[:1])
    done = await call(memory, tmp_path, "-r", repository, "--schedule", "off")
    rows = await memory.rows(sa.select(consolidation_schedules.c.is_enabled))
    assert (done.exit_code, "leaves out" in done.stdout) == (0, True)
    assert {"is_enabled": False} in rows
    unknown = await call(memory, tmp_path, "-r", "no/where", "--schedule", "off")
    assert (unknown.exit_code, "nothing was written" in unknown.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-r", "a/b", "--channel", "C1"], "exclude each other"),
        (["--text"], "--dry-run"),
        (["--schedule", "off"], "--repository"),
        (["--size-min", "1"], "--size-min"),
    ],
    ids=["places", "text", "schedule", "size"],
)
def test_wrong_usage_ends_with_2_and_says_why(arguments: list[str], says: str) -> None:
    done = CliRunner().invoke(app, ["consolidate", *arguments])
    assert (done.exit_code, says in done.output) == (2, True)


class Fact:
    def __init__(self, kind: str, event_id: str, **payload: Any) -> None:
        self.kind = kind
        self.payload = {"event_id": event_id, **payload}


ZEROS = {"clusters_found": 0, "clusters_consolidated": 0, "lessons_consolidated": 0, "lessons_created": 0}


def test_a_request_for_all_is_done_when_each_of_its_jobs_is() -> None:
    ends = Consolidation("all", open={"all"})
    ends.take(Fact("lessons_consolidated", "another", repository="x/y", **ZEROS))  # pyright: ignore[reportArgumentType]
    ends.take(Fact("consolidation_dispatched", "all", jobs=["1", "2"]))  # pyright: ignore[reportArgumentType]
    assert (ends.open, ends.total) == ({"1", "2"}, 2)
    ends.take(Fact("lessons_consolidated", "1", repository="a/b", **ZEROS))  # pyright: ignore[reportArgumentType]
    ends.take(Fact("dead", "2"))  # pyright: ignore[reportArgumentType]
    assert (ends.open, ends.dead, [end.place for end in ends.done], ends.is_failed) == (set(), ["2"], ["a/b"], True)
