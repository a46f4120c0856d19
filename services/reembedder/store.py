"""The reembedder's statements about the job in work: each is fenced by its epoch."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import sqlalchemy as sa
from lorebus.contracts.facts.reembedder import ReembedDone, ReembedFailed, ReembedProgress
from lorebus.errors import LorebusError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.database import outages_as_store_unavailable
from libs.common.embedding.models import insert_model
from libs.common.embedding.port import Vectors
from libs.common.outbox import insert_events
from libs.common.schema import reembed_jobs
from libs.common.vectors import VectorTable
from services.reembedder.cutover import begin_building, cut_over, find_model, give_up, lock_models
from services.reembedder.rows import Batch, Row, delete_vectors, find_rows, is_complete, next_table, store_batch
from services.reembedder.rules import BATCH_ROWS, Job, is_good_enough, is_milestone

_jobs = reembed_jobs.c
_is_live = _jobs.ended_at.is_(None)


class JobLost(LorebusError):
    """The job has ended, or another copy walks it."""


class JobStore:
    def __init__(self, engine: AsyncEngine, lease_seconds: float) -> None:
        self._engine = engine
        self._lease = sa.text(f"interval '{lease_seconds} seconds'")

    async def take(self) -> Job | None:
        """The running job, unless another copy holds it."""
        is_free = sa.or_(_jobs.lease_until.is_(None), _jobs.lease_until < sa.func.clock_timestamp())
        mine = sa.update(reembed_jobs).where(_is_live, _jobs.state == "running", is_free)
        values = {"epoch": _jobs.epoch + 1, "lease_until": self._lease_end()}
        async with self._begin() as connection:
            row = (await connection.execute(mine.values(values).returning(*_columns()))).mappings().one_or_none()
        return Job(**row) if row else None

    async def renew(self, job: Job) -> Job:
        """The job as it stands now; the lease begins anew. Raises JobLost."""
        async with self._begin() as connection:
            return await self._update(connection, job, lease_until=self._lease_end())

    async def release(self, job: Job) -> None:
        """Lets another copy take it at once. Raises JobLost."""
        async with self._begin() as connection:
            await self._update(connection, job, lease_until=None)

    async def wait_for(self, job: Job, what: str | None) -> Job:
        """Notes what the walk waits for, None: for nothing any more; tells it where that is new."""
        if job.waits_for == what:
            return job
        async with self._begin() as connection:
            changed = await self._update(connection, job, waits_for=what)
            await insert_events(connection, [_progress(changed)])
            return changed

    async def begin_walk(self, job: Job, vectors: Vectors | None, usd_per_million_tokens: float | None) -> Job:
        """Makes the model one that is built, from its vectors of the background where it is new."""
        async with self._begin() as connection:
            await self._update(connection, job)
            if vectors is not None:
                await delete_vectors(connection, job.model)
                asked = job.dimensions_asked
                await insert_model(connection, job.model, vectors, dimensions_asked=asked, is_serving=False)
            model = await find_model(connection, name=job.model)
            assert model is not None
            await begin_building(connection, model.id)
            return await self._update(
                connection, job, model_id=model.id, usd_per_million_tokens=usd_per_million_tokens, waits_for=None
            )

    async def needs_background(self, job: Job) -> bool:
        """Whether its model is new, or was known with vectors of another length, which are of no use."""
        async with self._begin() as connection:
            model = await find_model(connection, name=job.model)
        asked = job.dimensions_asked
        return model is None or (model.state == "retired" and asked not in (None, model.dimensions))

    async def find_rows(self, job: Job, table: VectorTable) -> list[Row]:
        assert job.model_id is not None
        async with self._begin() as connection:
            cursor = job.cursor if job.table_name == table.name else None
            return list(await find_rows(connection, table, job.id, job.model_id, after=cursor, limit=BATCH_ROWS))

    async def commit_batch(self, job: Job, table: VectorTable, batch: Batch, seconds: float) -> Job:
        """Vectors, counts and cursor together, or JobLost and none of them."""
        assert job.model_id is not None
        async with self._begin() as connection:
            await self._update(connection, job)
            counts = await store_batch(connection, table, job.id, job.model_id, batch)
            values: dict[str, object] = {name: _jobs[name] + count for name, count in counts.items()}
            values |= {"worked_seconds": _jobs.worked_seconds + seconds, "lease_until": self._lease_end()}
            if not batch.outage:
                values |= {"table_name": table.name, "cursor": batch.rows[-1].id}
            changed = await self._update(connection, job, **values)
            if is_milestone(job.looked_at, changed.looked_at):
                await insert_events(connection, [_progress(changed)])
            return changed

    async def move_on(self, job: Job, table: VectorTable) -> Job:
        """To the next table; behind the last one the model takes over, unless rows were written meanwhile."""
        async with self._begin() as connection:
            await self._update(connection, job)
            if following := next_table(table.name):
                return await self._update(connection, job, table_name=following.name, cursor=None)
            assert job.model_id is not None
            if await is_complete(connection, job.id, job.model_id):
                # Again, with everybody who writes held up.
                await lock_models(connection)
                if await is_complete(connection, job.id, job.model_id):
                    return await self._end_walk(connection, job)
            return await self._update(connection, job, table_name=None, cursor=None)

    async def _end_walk(self, connection: AsyncConnection, job: Job) -> Job:
        assert job.model_id is not None
        if not is_good_enough(job):
            reason = f"the model did not embed {job.failed} of {job.looked_at} rows"
            return await self._fail(connection, job, reason)
        serving = await find_model(connection, state="serving")
        previous = serving if serving and serving.id != job.model_id else None
        if previous:
            await cut_over(connection, job.model_id)
        fact = ReembedDone(
            model=job.model, job_id=job.id, **job.counts, previous_model=previous.name if previous else None
        )
        await insert_events(connection, [fact])
        return await self._end(connection, job, state="done", previous_model_id=previous.id if previous else None)

    async def fail(self, job: Job, reason: str) -> Job:
        """Ends it for something that no waiting mends. Raises JobLost."""
        async with self._begin() as connection:
            return await self._fail(connection, job, reason)

    async def _fail(self, connection: AsyncConnection, job: Job, reason: str) -> Job:
        if job.model_id is not None:
            await give_up(connection, job.model_id)
        await insert_events(connection, [ReembedFailed(model=job.model, job_id=job.id, reason=reason, **job.counts)])
        return await self._end(connection, job, state="failed", reason=reason)

    async def _end(self, connection: AsyncConnection, job: Job, **values: object) -> Job:
        ended: dict[str, object] = {"ended_at": sa.func.now(), "lease_until": None, "waits_for": None}
        return await self._update(connection, job, **ended, **values)

    async def _update(self, connection: AsyncConnection, job: Job, **values: object) -> Job:
        """The fence: only who holds the job changes it. Without values it only locks the row."""
        mine = sa.update(reembed_jobs).where(_jobs.id == job.id, _jobs.epoch == job.epoch, _is_live)
        fenced = mine.values(values or {"epoch": job.epoch}).returning(*_columns())
        row = (await connection.execute(fenced)).mappings().one_or_none()
        if row is None:
            raise JobLost(f"job {job.id} has ended, or another copy walks it")
        return Job(**row)

    def _lease_end(self) -> sa.ColumnElement[object]:
        return sa.func.clock_timestamp() + self._lease

    @asynccontextmanager
    async def _begin(self) -> AsyncGenerator[AsyncConnection]:
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                yield connection


async def find_live(connection: AsyncConnection) -> Job | None:
    return await find_job(connection, _is_live)


async def find_job(connection: AsyncConnection, *conditions: sa.ColumnElement[bool]) -> Job | None:
    """The newest that fits."""
    query = sa.select(*_columns()).where(*conditions).order_by(_jobs.id.desc()).limit(1)
    row = (await connection.execute(query)).mappings().one_or_none()
    return Job(**row) if row else None


def _progress(job: Job) -> ReembedProgress:
    state = "waiting" if job.waits_for and job.state == "running" else job.state
    counts = {**job.counts, "stale": job.stale, "reason": job.waits_for}
    return ReembedProgress.model_validate({"model": job.model, "job_id": job.id, "state": state, **counts})


def _columns() -> list[sa.Column[Any]]:
    return [_jobs[name] for name in Job.__dataclass_fields__]


async def resume_live(connection: AsyncConnection) -> None:
    await connection.execute(sa.update(reembed_jobs).where(_is_live).values(state="running"))
