"""The reembedder is killed in the middle of batches: nothing lost, hardly anything billed twice, recall never dark."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import sqlalchemy as sa
from conftest import Installation, run_services
from embeddings import MODEL, EmbeddingProvider, embedding_provider
from stored_rows import store_rows

from libs.common.embedding.choose import create_embedder, setting_of
from libs.common.embedding.serving import open_models
from libs.common.schema import embedding_models, memory_vectors, reembed_jobs
from libs.common.settings import CommonSettings
from services.gate.app import PROGRAM as GATE
from services.recall.app import PROGRAM as RECALL
from services.reembedder.rules import BATCH_ROWS
from services.writer.app import PROGRAM as WRITER

pytestmark = pytest.mark.filterwarnings("ignore")

ROWS = int(os.environ.get("LOREBUS_REEMBED_ROWS", "400"))
KILLS = int(os.environ.get("LOREBUS_REEMBED_KILLS", "2"))
PATIENCE_SECONDS = 300
ASKED = 17
OLD = "hashing/blake2b-384"


@asynccontextmanager
async def reembedder(
    settings: CommonSettings, provider: EmbeddingProvider
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process of its own, killed at the end of the block."""
    environment = (
        os.environ
        | provider.variables
        | {
            "LOREBUS_DATABASE_URL": settings.database_url,
            "LOREBUS_NATS_URL": settings.nats_url,
            "LOREBUS_LEASE_SECONDS": str(settings.lease_seconds),
            "LOREBUS_EMBEDDER": "hashing",
        }
    )
    command = [sys.executable, "-m", "services.reembedder"]
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=quiet, stderr=quiet)
    yield process
    with suppress(ProcessLookupError):
        process.kill()
    assert await process.wait() == -signal.SIGKILL


async def keep_asking(installation: Installation, repository: str, answers: list[bool]) -> None:
    """One question after the other, all the while."""
    while True:
        reply = await installation.recall(repository, f"build number{ASKED} fails, tool{ASKED} of runner{ASKED}")
        answers.append(any(f"number{ASKED} " in item.summary for item in reply.items))
        await asyncio.sleep(0.05)


async def test_kills_in_the_middle_of_batches_cost_a_batch_each_and_recall_answers_throughout(
    apart: CommonSettings, repository: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = apart.model_copy(update={"embedder": "hashing"})
    answers: list[bool] = []
    async with embedding_provider() as provider, run_services(settings, GATE, WRITER, RECALL) as installation:
        for name, value in provider.variables.items():
            monkeypatch.setenv(name, value)
        texts = [f"The build number{n} fails without the tool{n} of the runner{n}." for n in range(ROWS)]
        # Recall and the gate share this process, which importing LiteLLM holds up for a moment.
        await create_embedder(setting_of(MODEL)).embed(["warm"])
        model = (await open_models(installation.engine, settings)).serving
        await store_rows(installation.engine, model, repository, texts)
        await installation.memory.change_embedding(model=MODEL, reembed=True)
        asking = asyncio.create_task(keep_asking(installation, repository, answers))
        for kill in range(KILLS):
            # An odd number of texts further on than the last time: never at the end of a batch.
            provider.hold_from(len(provider.texts) + ROWS // (2 * KILLS) + 7 * kill)
            async with reembedder(settings, provider):
                await asyncio.wait_for(provider.held.wait(), PATIENCE_SECONDS)
            provider.let_go()
        async with reembedder(settings, provider):
            done = sa.select(reembed_jobs).filter_by(state="done")
            [job] = await installation.until(done, PATIENCE_SECONDS)
        answered = len(answers)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(answers) < answered + 40:  # noqa: ASYNC110 - behind the cut-over as well
                await asyncio.sleep(0.05)
        asking.cancel()
        vectors = (
            sa.select(sa.func.count().label("rows"))
            .select_from(memory_vectors)
            .join(embedding_models, embedding_models.c.id == memory_vectors.c.model_id)
            .where(embedding_models.c.name == MODEL, embedding_models.c.state == "serving")
        )
        new = await installation.rows(vectors)
    assert (job["done"], job["failed"], job["skipped"]) == (ROWS, 0, 0), "the totals survive the kills"
    assert new == [{"rows": ROWS}]
    rows_billed = [text for text in provider.texts if text.startswith("The build number")]
    assert set(rows_billed) == set(texts)
    assert len(rows_billed) <= ROWS + KILLS * BATCH_ROWS
    assert all(answers), f"{answers.count(False)} of {len(answers)} answers were without the memory"
