"""The walk through all memories: one copy takes the job, and each of its steps can be the last before a kill.

A step is a batch: its vectors, counts and cursor are committed together, so a job taken over goes on behind the last
batch that was. What is away (gate, embedder, database) is waited for; what no waiting mends ends the job.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from libs.common.bus.consume import retry_delay_seconds
from libs.common.bus.relay import Relay
from libs.common.embedding.choose import create_embedder, setting_of
from libs.common.embedding.models import ServingModel, background_texts, open_stored
from libs.common.embedding.port import Vectors
from libs.common.embedding.prices import find_usd_per_million_tokens
from libs.common.errors import (
    EmbedderUnavailable,
    EmbeddingModelMismatch,
    EmbeddingRefused,
    GateUnavailable,
    SetupIncomplete,
    StoreUnavailable,
)
from services.reembedder.batching import Batching
from services.reembedder.rows import get_table, next_table
from services.reembedder.rules import Job
from services.reembedder.store import JobLost, JobStore

_log = structlog.get_logger("reembedder")

DELAYS_SECONDS = (1.0, 2.0, 5.0, 15.0, 30.0)
_OUTAGES = (GateUnavailable, EmbedderUnavailable, StoreUnavailable)


class Walking:
    """`poll_seconds`: how often a copy without a job looks for one."""

    def __init__(
        self,
        store: JobStore,
        engine: AsyncEngine,
        batching: Batching,
        relay: Relay,
        *,
        poll_seconds: float,
        lease_seconds: float,
        delays_seconds: Sequence[float] = DELAYS_SECONDS,
    ) -> None:
        self._store = store
        self._engine = engine
        self._batching = batching
        self._relay = relay
        self._poll_seconds = poll_seconds
        self._heartbeat_seconds = lease_seconds / 3
        self._delays_seconds = delays_seconds
        self._model: ServingModel | None = None
        self._commit_seconds = 0.0
        self._stopping = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    async def run(self) -> None:
        while not self._stopping.is_set():
            job = None
            with suppress(StoreUnavailable):
                job = await self._store.take()
            if job is None:
                await self._rest(self._poll_seconds)
            else:
                await self._hold(job)

    async def stop(self) -> None:
        """Finishes the batch in work and leaves the rest to another copy."""
        self._stopping.set()
        await self._idle.wait()

    async def _hold(self, job: Job) -> None:
        _log.info("reembedder.job_taken", job_id=job.id, model=job.model, cursor=str(job.cursor), epoch=job.epoch)
        self._idle.clear()
        heart = asyncio.create_task(self._beat(job))
        try:
            await self._walk(job)
        except (JobLost, StoreUnavailable) as error:
            _log.info("reembedder.job_left", job_id=job.id, reason=str(error))
        finally:
            heart.cancel()
            self._model = None
            self._relay.nudge()
            self._idle.set()

    async def _walk(self, job: Job) -> None:
        tries = 0
        while job.state == "running" and not self._stopping.is_set():
            try:
                job = await self._step(job)
                job, tries = await self._store.wait_for(job, None), 0
            except _OUTAGES as outage:
                tries += 1
                job = await self._wait_out(job, outage, tries)
        _log.info("reembedder.job_stopped", job_id=job.id, state=job.state, **job.counts)
        if job.state in ("running", "paused"):
            await self._store.release(job)

    async def _step(self, job: Job) -> Job:
        """Raises one of the outages, and JobLost."""
        job = await self._store.renew(job)
        if job.state != "running":
            return job
        try:
            if job.model_id is None:
                return await self._begin(job)
            if self._model is None:
                self._model = await open_stored(self._engine, job.model_id)
            return await self._embed_next(job, self._model)
        except (SetupIncomplete, EmbeddingModelMismatch, EmbeddingRefused) as error:
            return await self._store.fail(job, str(error))

    async def _begin(self, job: Job) -> Job:
        price = await find_usd_per_million_tokens(job.model)
        is_new = await self._store.needs_background(job)
        return await self._store.begin_walk(job, await _embed_background(job) if is_new else None, price)

    async def _embed_next(self, job: Job, model: ServingModel) -> Job:
        table = get_table(job.table_name) if job.table_name else next_table(None)
        assert table is not None
        started = time.monotonic()
        rows = await self._store.find_rows(job, table)
        if not rows:
            return await self._store.move_on(job, table)
        batch = await self._batching.embed(rows, model)
        embedded = time.monotonic()
        # A commit cannot know how long it takes; the one before it was alike.
        changed = await self._store.commit_batch(job, table, batch, embedded - started + self._commit_seconds)
        self._commit_seconds = time.monotonic() - embedded
        if batch.outage:
            raise batch.outage
        return changed

    async def _wait_out(self, job: Job, outage: Exception, tries: int) -> Job:
        seconds = retry_delay_seconds(tries, self._delays_seconds)
        _log.warning("reembedder.waits", job_id=job.id, error=type(outage).__name__, seconds=round(seconds, 1))
        with suppress(StoreUnavailable):
            job = await self._store.wait_for(job, _name(outage))
            self._relay.nudge()
        await self._rest(seconds)
        return job

    async def _beat(self, job: Job) -> None:
        while True:
            await asyncio.sleep(self._heartbeat_seconds)
            with suppress(StoreUnavailable, JobLost):
                await self._store.renew(job)

    async def _rest(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()


async def _embed_background(job: Job) -> Vectors:
    # Loading a model, or LiteLLM, takes seconds.
    embedder = await asyncio.to_thread(create_embedder, setting_of(job.model), job.dimensions_asked)
    if embedder.name != job.model:
        raise EmbeddingModelMismatch(f"there is no model {job.model}: {embedder.name} is what is installed here")
    return await embedder.embed(background_texts())


def _name(outage: Exception) -> str:
    match outage:
        case GateUnavailable():
            return "gate"
        case EmbedderUnavailable():
            return "embedder"
        case _:
            return "database"
