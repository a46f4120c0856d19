"""A re-embedding as the command sees it: asked for on the bus, watched in the database."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from lorebus.contracts.subjects import EMBEDDING_CHANGED
from lorebus.embedding import EmbeddingFields
from lorebus.errors import LorebusError
from sqlalchemy.ext.asyncio import AsyncEngine

from cli.running import Target
from cli.stores import open_database
from libs.common.embedding.prices import find_usd_per_million_tokens
from libs.common.schema import inbox
from services.reembedder.administration import ReembedAdministration, Status
from services.reembedder.rules import Forecast, Job, estimate_tokens, estimate_usd, forecast

SETTLE_SECONDS_MAX = 30.0
LOOK_SECONDS = 0.5


class NotTaken(LorebusError):
    """Nobody took up the wish."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a wish: the status and the reason of its inbox row."""

    status: str
    reason: str


@dataclass(frozen=True, slots=True)
class Estimate:
    rows: int
    tokens: int
    cost_usd: float | None


async def find_status(data: Path) -> Status:
    async with open_database(data) as engine, asyncio.timeout(SETTLE_SECONDS_MAX):
        return await ReembedAdministration(engine).find_status()


async def estimate(data: Path, model: str) -> Estimate:
    """What embedding all that the model has not embedded would take."""
    async with open_database(data) as engine, asyncio.timeout(SETTLE_SECONDS_MAX):
        stale = (await ReembedAdministration(engine).find_status(model)).stale
    tokens = estimate_tokens(stale.chars)
    return Estimate(stale.rows, tokens, estimate_usd(model, tokens, await find_usd_per_million_tokens(model)))


async def ask_for(target: Target, wish: EmbeddingFields) -> Settled:
    """Publishes the wish and waits until it is judged. Raises NotTaken."""
    async with target.connect() as memory:
        published = await memory.change_embedding(**wish)
    async with open_database(target.data) as engine:
        try:
            async with asyncio.timeout(SETTLE_SECONDS_MAX):
                return await _wait_settled(engine, target.tenant, published.event_id)
        except TimeoutError as error:
            raise NotTaken("the wish is on the bus, but nobody took it: `lorebus serve reembedder` does") from error


async def _wait_settled(engine: AsyncEngine, tenant: str, event_id: str) -> Settled:
    event = {"tenant": tenant, "schema_name": EMBEDDING_CHANGED, "event_id": event_id}
    query = sa.select(inbox.c.status, inbox.c.reason).filter_by(**event).where(inbox.c.terminal_at.is_not(None))
    while True:
        async with engine.connect() as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is not None:
            return Settled(row.status, row.reason or "")
        await asyncio.sleep(LOOK_SECONDS / 5)


async def watch(data: Path, show: Callable[[Job], None]) -> Status:
    """Shows the job until it ends or is paused."""
    async with open_database(data) as engine:
        administration = ReembedAdministration(engine)
        while True:
            status = await administration.find_status()
            if status.job is None:
                return status
            show(status.job)
            if status.job.state != "running":
                return status
            await asyncio.sleep(LOOK_SECONDS)


def render_json(status: Status) -> dict[str, Any]:
    job = status.job
    return {
        "model_spec": status.serving.name if status.serving else None,
        "running": job is not None and job.state == "running",
        "stale": status.stale.rows,
        "total": status.stale.total,
        "job": _job_json(job, forecast(job)) if job else None,
        "models": [
            {"name": model.name, "dimensions": model.dimensions, "state": model.state, "retired_at": model.retired_at}
            for model in status.models
        ],
    }


def _job_json(job: Job, before: Forecast) -> dict[str, Any]:
    return {
        "id": job.id,
        "model": job.model,
        "state": job.state,
        "waits_for": job.waits_for,
        "reason": job.reason,
        "stale_at_start": job.stale,
        **job.counts,
        "left": before.left,
        "rows_per_second": before.rows_per_second,
        "seconds_left": before.seconds,
        "tokens_left": before.tokens,
        "cost_usd_left": before.cost_usd,
    }
