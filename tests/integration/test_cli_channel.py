"""`lorebus channel` on a real database and bus."""

import asyncio
import json
from typing import Any

import pytest
import sqlalchemy as sa
from channel_talk import HOSTILE, id_of, new_id, open_channel, tell_turn
from conftest import Installation
from typer.testing import CliRunner, Result

from cli.main import app
from libs.common.schema import audit


class Desk:
    """Somebody at a terminal."""

    def __init__(self, installation: Installation) -> None:
        settings = installation.settings
        self._env = {"LOREBUS_DATABASE_URL": settings.database_url, "LOREBUS_NATS_URL": settings.nats_url}

    async def channel(self, *arguments: str) -> Result:
        return await asyncio.to_thread(CliRunner(env=self._env).invoke, app, ["channel", *arguments])

    async def shown(self, *arguments: str) -> Any:
        return json.loads((await self.channel(*arguments, "--json")).stdout)


@pytest.fixture
def desk(installation: Installation) -> Desk:
    return Desk(installation)


async def test_a_channel_is_set_shown_and_listed_and_each_change_is_audited(
    installation: Installation, desk: Desk
) -> None:
    key = f"{new_id('o')}/{new_id()}"
    assert (await desk.channel("show", key)).exit_code == 1
    done = await desk.channel("set", key, "--team", "T1", "--private", "--passive-ingest", "--no-consolidation")
    assert done.exit_code == 0, done.output
    entry = await desk.shown("show", key)
    assert (entry["key"], entry["team_id"], entry["is_private"], entry["is_active"]) == (key, "T1", True, True)
    assert (entry["passive_ingest_enabled"], entry["consolidation_enabled"]) == (True, False)
    assert (await desk.channel("set", key, "--public")).exit_code == 0
    assert [one["is_private"] for one in await desk.shown("list") if one["key"] == key] == [False]
    query = sa.select(audit.c.actor, audit.c.action).filter_by(entity_kind="channel", entity_id=key)
    rows = await installation.rows(query.order_by(audit.c.id))
    assert [row["action"] for row in rows] == ["channel.register", "channel.set", "channel.set"]
    assert {row["actor"].split(":")[0] for row in rows} == {"cli"}


@pytest.mark.parametrize(
    "arguments", [("set", "acme/C1"), ("set", "a b", "--private"), ("set", "C1", "--team", "a/b"), ("edit", "C1", "x")]
)
async def test_what_cannot_be_is_wrong_usage(desk: Desk, arguments: tuple[str, ...]) -> None:
    assert (await desk.channel(*arguments)).exit_code == 2


async def test_memories_are_shown_with_their_ids_and_edited(installation: Installation, desk: Desk) -> None:
    channel = open_channel(installation)
    id_ = str(id_of(await tell_turn(installation, channel)))
    shown = await desk.shown("show", channel.key, "--memories")
    assert [one["id"] for one in shown["memories"]] == [id_]
    done = await desk.channel("edit", channel.key, id_, "--summary", "Rollbacks are made by the on-call person alone.")
    assert done.exit_code == 0, done.output
    assert "on-call person alone" in (await desk.channel("show", channel.key, "--memories")).stdout
    refused = await desk.channel("edit", channel.key, id_, "--summary", HOSTILE)
    assert (refused.exit_code, "matched" in refused.stderr) == (1, True)
