"""`lorebus settings` on a real database."""

import asyncio
import json
from uuid import uuid4

import pytest
import sqlalchemy as sa
from conftest import Installation
from typer.testing import CliRunner, Result

from cli.main import app
from libs.common.database import create_engine
from libs.common.schema import audit, settings
from libs.common.settings import CommonSettings

NAME = "memory.lessonMaxAgeDays"


class Desk:
    """Somebody at a terminal, for a tenant of their own."""

    def __init__(self, database_url: str) -> None:
        self.tenant = f"t-{uuid4().hex[:12]}"
        self._env = {"LOREBUS_DATABASE_URL": database_url, "LOREBUS_TENANT": self.tenant, "COLUMNS": "200"}

    async def lorebus(self, *arguments: str) -> Result:
        return await asyncio.to_thread(CliRunner(env=self._env).invoke, app, ["settings", *arguments])

    async def value(self, *arguments: str) -> tuple[object, object]:
        """In force, and where it comes from."""
        done = await self.lorebus("get", NAME, "--json", *arguments)
        shown = json.loads(done.stdout)
        return shown["value"], shown["from"]


@pytest.fixture
def desk(servers: CommonSettings) -> Desk:
    return Desk(servers.database_url)


async def test_a_value_is_set_shown_with_its_place_and_taken_away_again(desk: Desk) -> None:
    assert (await desk.lorebus("set", NAME, "90")).exit_code == 0
    assert (await desk.lorebus("set", NAME, "30", "--team", "payments")).exit_code == 0
    assert await desk.value() == (90, {"level": "platform", "name": None})
    assert await desk.value("--team", "payments") == (30, {"level": "team", "name": "payments"})
    assert (await desk.lorebus("unset", NAME, "--team", "payments")).exit_code == 0
    assert (await desk.lorebus("unset", NAME)).exit_code == 0
    assert await desk.value("--team", "payments") == (0, None)


async def test_the_list_tells_of_every_setting_what_holds_and_what_it_takes(desk: Desk) -> None:
    await desk.lorebus("set", "consolidationCron", "15 4 * * sat")
    done = await desk.lorebus("list")
    assert done.exit_code == 0
    [line] = [line for line in done.stdout.splitlines() if "consolidationCron" in line]
    assert '"15 4 * * sat"' in line
    assert "the whole platform" in line
    listed = json.loads((await desk.lorebus("list", "--json")).stdout)
    shown = {entry["key"]: entry for entry in listed}[NAME]
    assert shown == {
        "key": NAME,
        "value": 0,
        "from": None,
        "default": 0,
        "range": "a whole number from 0 to 36500",
        "levels": ["team", "organization", "platform"],
        "read_by": "recall, consolidator",
        "meaning": shown["meaning"],
    }


async def test_a_change_is_audited_with_who_made_it(desk: Desk, servers: CommonSettings) -> None:
    await desk.lorebus("set", NAME, "90")
    engine = create_engine(servers.database_url, "tests")
    async with engine.connect() as connection:
        [row] = (await connection.execute(sa.select(audit).where(audit.c.tenant == desk.tenant))).all()
    await engine.dispose()
    assert row.actor.startswith("cli")
    assert (row.before, row.after) == (None, {"value": 90})


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["set", "memory.lessonMaxAge", "3"], NAME),
        (["get", "lessonMaxAgeDays"], NAME),
        (["unset", "lessonMaxAgeDays"], NAME),
        (["set", NAME, "-1"], "a whole number from 0"),
        (["set", NAME, "soon"], "a whole number from 0"),
        (["set", NAME, "3", "--channel", "C1"], "only for a team"),
        (["set", NAME, "3", "--team", "a", "--organization", "b"], "one level"),
        (["set", NAME, "3", "--team", ""], "name the team"),
        (["set", NAME], "Missing argument"),
    ],
)
async def test_wrong_usage_ends_with_2_and_says_what_to_do(desk: Desk, arguments: list[str], says: str) -> None:
    done = await desk.lorebus(*arguments)
    assert done.exit_code == 2
    assert says in done.stderr


async def test_a_stored_value_that_counts_for_nothing_is_pointed_out_with_the_remedy(
    desk: Desk, installation: Installation
) -> None:
    row = {"tenant": desk.tenant, "key": NAME, "scope_kind": "team", "scope_key": "payments", "value": "odd"}
    async with installation.engine.begin() as connection:
        await connection.execute(sa.insert(settings).values(row))
    done = await desk.lorebus("get", NAME, "--team", "payments")
    assert done.exit_code == 0
    assert f"lorebus settings unset {NAME} --team payments" in done.stderr
    assert "odd" not in done.output


async def test_unsetting_what_is_not_set_says_so(desk: Desk) -> None:
    done = await desk.lorebus("unset", NAME)
    assert (done.exit_code, "was not set" in done.stderr) == (0, True)


@pytest.mark.parametrize("arguments", [["list"], ["get", NAME], ["set", NAME, "3"], ["unset", NAME]])
async def test_without_a_schema_each_says_what_to_run(empty_database: str, arguments: list[str]) -> None:
    engine = create_engine(empty_database, "tests", vectors=False)
    async with engine.begin() as connection:
        await connection.execute(sa.text("create extension if not exists vector"))
    await engine.dispose()
    done = await Desk(empty_database).lorebus(*arguments)
    assert done.exit_code == 1
    assert "lorebus migrate" in done.stderr


async def test_a_tenant_that_is_none_is_said_plainly(desk: Desk) -> None:
    done = await desk.lorebus("list", "--tenant", "a.>")
    assert done.exit_code == 1
    assert "a tenant is" in done.stderr


@pytest.mark.parametrize("name", ["list", "get", "set", "unset"])
async def test_each_command_teaches_with_an_example(desk: Desk, name: str) -> None:
    done = await desk.lorebus(name, "--help")
    assert f"Example: lorebus settings {name}" in done.stdout
