"""What an administrator sees and does of a re-embedding, each change in one transaction with its audit row.

Starting is not here: that is said on the bus (`embedding.changed`).
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import sqlalchemy as sa
from lorebus.contracts.envelope import DEFAULT_TENANT
from lorebus.contracts.facts.fact import MemoryEvent
from lorebus.contracts.facts.reembedder import ReembedProgress, ReembedRolledBack, ReembedStarted
from lorebus.errors import LorebusError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.database import outages_as_store_unavailable
from libs.common.outbox import insert_events
from libs.common.schema import audit, embedding_models, reembed_jobs
from services.reembedder.cutover import ModelRow, cut_over, find_model, find_models, give_up, lock_models
from services.reembedder.rows import Stale, count_stale
from services.reembedder.rules import Job
from services.reembedder.store import find_job, find_live, resume_live

_jobs = reembed_jobs.c


class ReembedRefusal(LorebusError):
    """What was asked of a re-embedding cannot be; the text names the remedy."""


@dataclass(frozen=True, slots=True)
class Status:
    """`job`: the live one, else the last one. `stale` is of its model while it lives, else of the serving one."""

    serving: ModelRow | None
    models: Sequence[ModelRow]
    job: Job | None
    stale: Stale


@dataclass(frozen=True, slots=True)
class RolledBack:
    """`model` serves; `stale` rows it has not embedded, since it could not when they were written."""

    model: str
    given_up: str
    stale: int


class ReembedAdministration:
    """Every method raises StoreUnavailable."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def find_status(self, model: str | None = None) -> Status:
        """`model`: whose stale rows are counted, in place of the job's or the serving one's."""
        async with self._begin() as connection:
            job = await find_job(connection)
            serving = await find_model(connection, state="serving")
            is_live = job is not None and job.state in ("running", "paused")
            of_job = job.model if job and is_live else (serving.name if serving else "")
            stale = await count_stale(connection, model or of_job)
            return Status(serving, await find_models(connection), job, stale)

    async def pause(self, *, actor: str) -> Job:
        """The batch in work is finished. Raises ReembedRefusal."""
        async with self._begin() as connection:
            job = await _lock_live(connection)
            if job.state == "paused":
                raise ReembedRefusal("it is paused already: `lorebus reembed resume` goes on")
            await connection.execute(sa.update(reembed_jobs).where(_jobs.id == job.id).values(state="paused"))
            fact = ReembedProgress(model=job.model, job_id=job.id, state="paused", stale=job.stale, **job.counts)
            await _note(connection, "pause", job, actor, fact)
            return job

    async def resume(self, *, actor: str) -> Job:
        """Raises ReembedRefusal."""
        async with self._begin() as connection:
            job = await _lock_live(connection)
            if job.state == "running":
                raise ReembedRefusal("it is running: `lorebus reembed status` shows how far it is")
            await resume_live(connection)
            total = (await count_stale(connection, job.model)).total
            left = job.stale - job.looked_at
            fact = ReembedStarted(model=job.model, job_id=job.id, stale=left, total=total, actor=actor, is_resumed=True)
            await _note(connection, "resume", job, actor, fact)
            return job

    async def roll_back(self, *, actor: str) -> RolledBack:
        """Gives up a job that lives; else lets the model before the last one serve again. Raises ReembedRefusal."""
        async with self._begin() as connection:
            job = await _lock_last(connection)
            await lock_models(connection)
            if job.state in ("running", "paused"):
                if job.model_id is not None:
                    await give_up(connection, job.model_id)
            else:
                await cut_over(connection, (await _get_previous(connection, job)).id)
            ended = {"state": "rolled_back", "ended_at": sa.func.now(), "lease_until": None, "waits_for": None}
            await connection.execute(sa.update(reembed_jobs).where(_jobs.id == job.id).values(ended))
            serving = await find_model(connection, state="serving")
            name = serving.name if serving else ""
            fact = ReembedRolledBack(model=job.model, job_id=job.id, serving=name, actor=actor)
            await _note(connection, "rollback", job, actor, fact)
            return RolledBack(name, job.model, (await count_stale(connection, name)).rows)

    @asynccontextmanager
    async def _begin(self) -> AsyncGenerator[AsyncConnection]:
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                yield connection


async def _lock_live(connection: AsyncConnection) -> Job:
    await connection.execute(sa.select(_jobs.id).where(_jobs.ended_at.is_(None)).with_for_update())
    job = await find_live(connection)
    if job is None:
        raise ReembedRefusal("no re-embedding is on: `lorebus reembed start` begins one")
    return job


async def _lock_last(connection: AsyncConnection) -> Job:
    """The live job, or the last one that changed which model serves."""
    await connection.execute(sa.select(_jobs.id).order_by(_jobs.id).with_for_update())
    job = await find_live(connection) or await find_job(connection, _jobs.previous_model_id.is_not(None))
    if job is None or job.state not in ("running", "paused", "done"):
        raise ReembedRefusal("there is nothing to go back to: no model has taken over from another")
    return job


async def _get_previous(connection: AsyncConnection, job: Job) -> ModelRow:
    previous = await find_model(connection, id=job.previous_model_id)
    if previous is None or previous.state != "retired" or previous.completed_at is None:
        name = previous.name if previous else "the model before"
        raise ReembedRefusal(f"the vectors of {name} are gone: `lorebus reembed start --model {name}` makes them again")
    return previous


async def _note(connection: AsyncConnection, action: str, job: Job, actor: str, fact: MemoryEvent) -> None:
    await insert_events(connection, [fact])
    row = {"tenant": DEFAULT_TENANT, "actor": actor, "action": f"reembed.{action}", "entity_kind": "embedding_model"}
    serving = await connection.scalar(sa.select(embedding_models.c.name).filter_by(state="serving"))
    row |= {"entity_id": job.model}
    before, after = {"state": job.state, **job.counts}, {"serving": serving}
    await connection.execute(sa.insert(audit).values(**row, before=before, after=after))
