"""No embedding model serves without its calibration: its vectors of the background texts."""

from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from conftest import Installation, ci_run, run_services
from embeddings import MODEL, EmbeddingProvider, embedding_provider
from sqlalchemy.exc import IntegrityError

from libs.common.embedding.models import background_texts
from libs.common.embedding.serving import open_models
from libs.common.schema import embedding_models
from libs.common.settings import CommonSettings
from services.gate.app import PROGRAM as GATE
from services.recall.app import PROGRAM as RECALL
from services.reembedder.app import PROGRAM as REEMBEDDER
from services.writer.app import PROGRAM as WRITER

pytestmark = pytest.mark.filterwarnings("ignore")

PATIENCE_SECONDS = 120
LOG = "Error: cannot find module 'fast-glob'\nnpm ERR! code ELIFECYCLE\n"
QUESTION = "node cannot find the module fast-glob"


@pytest.fixture
async def provider(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddingProvider]:
    async with embedding_provider() as provider:
        for name, value in provider.variables.items():
            monkeypatch.setenv(name, value)
        yield provider


async def calibration_of(installation: Installation, name: str) -> tuple[str, int]:
    """Its state, and how many background vectors it has."""
    [row] = await installation.rows(sa.select(embedding_models).filter_by(name=name))
    background = np.frombuffer(row["background"], dtype=np.float32).reshape(-1, row["dimensions"])
    assert np.linalg.norm(background, axis=1) == pytest.approx(np.ones(len(background)), abs=1e-5)
    return row["state"], len(background)


async def test_a_model_that_takes_over_was_calibrated_before(
    apart: CommonSettings, repository: str, provider: EmbeddingProvider
) -> None:
    settings = apart.model_copy(update={"embedder": "wordllama"})
    async with run_services(settings, GATE, WRITER, RECALL, REEMBEDDER) as services:
        await services.publish(ci_run(repository, LOG))
        await services.memory.change_embedding(model=MODEL, reembed=True)
        await services.facts("reembed_done", model=MODEL, seconds=PATIENCE_SECONDS)
        serving = await calibration_of(services, MODEL)
        reply = await services.recall(repository, QUESTION)
    assert serving == ("serving", len(background_texts()))
    assert len(reply.items) == 1


@pytest.mark.parametrize("missing", ["background", "calibration"])
async def test_a_model_without_calibration_cannot_be_stored(servers: CommonSettings, missing: str) -> None:
    made: dict[str, Any] = {"background": bytes(32), "calibration": {"texts": 2}}
    made |= {"background": b""} if missing == "background" else {"calibration": {}}
    row = {"name": f"x/no-{missing}", "dimensions": 4, "state": "building", "background_sha256": ""}
    async with run_services(servers) as installation:
        with pytest.raises(IntegrityError, match="embedding_models_calibrated_check"):
            async with installation.engine.begin() as connection:
                await connection.execute(sa.insert(embedding_models).values(**row, **made))


async def test_a_model_calibrated_by_other_texts_is_calibrated_anew_where_it_is_opened(
    apart: CommonSettings, repository: str, provider: EmbeddingProvider
) -> None:
    settings = apart.model_copy(update={"embedder": f"litellm/{MODEL}"})
    async with run_services(settings) as installation:
        right = (await open_models(installation.engine, settings)).serving
        # As a version with two texts of its own would have left it.
        others = {"background": right.background[5:7].tobytes(), "background_sha256": "other"}
        async with installation.engine.begin() as connection:
            await connection.execute(sa.update(embedding_models).values(**others, calibration={"texts": 2}))
    async with run_services(settings, GATE, WRITER, RECALL) as services:
        await services.publish(ci_run(repository, LOG))
        reply = await services.recall(repository, QUESTION)
        again = (await open_models(services.engine, settings)).serving
        serving = await calibration_of(services, MODEL)
    assert serving == ("serving", len(background_texts()))
    assert again.background == pytest.approx(right.background, abs=1e-6)
    assert len(reply.items) == 1
