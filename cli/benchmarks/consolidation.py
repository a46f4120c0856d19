"""How much CPU it takes to find what is alike in a scope: as the consolidator does it, against a self join in SQL.

Both look at the same synthetic vectors in a Postgres of its own. Ours counts the CPU of this process and of the
backend that hands out the vectors; the join that of its backend, without parallel workers.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import sqlalchemy as sa
from pgvector import HalfVector
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from cli.one_machine import Ports, one_machine
from cli.output import notes
from cli.own_servers import refuse_real_servers
from libs.common.database import create_engine
from libs.common.domain.memory import item_id_for, screened_text, text_hash
from libs.common.embedding.choose import create_embedder
from libs.common.embedding.models import open_model
from libs.common.inbox import Inbox
from libs.common.schema import gate_verdicts, memory_items, memory_vectors, scopes
from services.consolidator.clustering import Vectors
from services.consolidator.planning import cluster_candidates
from services.consolidator.rules import Scope
from services.consolidator.store import ConsolidatorStore

SHARE_MAX = 1 / 8
COSINE_MIN = 0.85
SIZE_MIN = 3
THEME_SIZE = 8
NOISE = 0.35
"""Of a component, beside a theme's own of 1: about half of a theme's pairs are above the bar."""
SEED = 20_261_130
ROWS_A_STATEMENT = 1_000
TIMEOUT_SECONDS = 1_800.0
TICK_SECONDS = 0.005

JOIN = sa.text(
    "select count(*) from memory_vectors a join memory_vectors b"
    " on b.scope_id = a.scope_id and b.model_id = a.model_id and b.item_id > a.item_id"
    " where a.scope_id = :scope and a.active and b.active and a.embedding <#> b.embedding <= :nearness"
)


@dataclass(frozen=True, slots=True)
class Report:
    """`loop_stall_ms`: the longest that the event loop did nothing else while clusters were found."""

    items: int
    dimensions: int
    clusters: int
    pairs: int
    ours_cpu_seconds: float
    join_cpu_seconds: float
    loop_stall_ms: float

    @property
    def share(self) -> float:
        return self.ours_cpu_seconds / self.join_cpu_seconds

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "share": self.share, "ok": self.share <= SHARE_MAX}


async def bench_consolidation(items: int) -> Report:
    refuse_real_servers("bench")
    with tempfile.TemporaryDirectory(prefix="lorebus-bench-") as folder:
        await asyncio.to_thread(Path(folder).chmod, 0o711)  # the servers' user has to pass through
        async with one_machine(Path(folder) / "data", Ports(), programs=[]) as machine:
            engine = create_engine(machine.database_url, "bench", connections_max=1, timeout_seconds=TIMEOUT_SECONDS)
            try:
                return await _compare(engine, items)
            finally:
                await engine.dispose()


async def _compare(engine: AsyncEngine, items: int) -> Report:
    model = await open_model(engine, create_embedder("hashing"))
    dimensions = model.background.shape[1]
    with notes.status(f"storing {items} items"):
        scope = await _fill(engine, build_vectors(items, dimensions), model.id)
    with notes.status("finding clusters"):
        clusters, ours, stall_ms = await _cluster(engine, scope, model.id)
    with notes.status("the same pairs by a self join; 20,000 items take about a minute"):
        pairs, join = await _join(engine, scope)
    return Report(items, dimensions, clusters, pairs, ours, join, stall_ms)


def build_vectors(items: int, dimensions: int) -> Vectors:
    """Themes of about THEME_SIZE items that are more or less alike."""
    chance = np.random.default_rng(SEED)
    themes = chance.normal(size=(max(1, items // THEME_SIZE), dimensions))
    rows = themes[chance.integers(0, len(themes), items)] + NOISE * chance.normal(size=(items, dimensions))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


async def _fill(engine: AsyncEngine, vectors: Vectors, model_id: int) -> Scope:
    """Past the writer: what is measured reads vectors alone, so that all items say the same."""
    place = {"tenant": "default", "kind": "swe-lessons", "key": "bench/large", "items_active": len(vectors)}
    verdict = {"tenant": "default", "text_sha256": text_hash(screened_text("bench", "")), "pattern_set": "bench"}
    async with engine.begin() as connection:
        new = sa.insert(scopes).values(place).returning(scopes.c.id)
        scope = Scope((await connection.execute(new)).scalar_one(), "default", "swe-lessons", "bench/large")
        await connection.execute(sa.insert(gate_verdicts).values(**verdict, verdict="clean"))
        for start in range(0, len(vectors), ROWS_A_STATEMENT):
            rows = range(start, min(start + ROWS_A_STATEMENT, len(vectors)))
            now = (await connection.execute(sa.select(sa.func.now()))).scalar_one()
            items = [_item(scope, row) | verdict | {"evidence_at": now} for row in rows]
            await connection.execute(sa.insert(memory_items), items)
            embedded = [
                _vector(item["id"], scope, model_id, vectors[row]) for row, item in zip(rows, items, strict=True)
            ]
            await connection.execute(sa.insert(memory_vectors), [one | {"created_at": now} for one in embedded])
    async with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        await connection.execute(sa.text("vacuum (analyze) memory_vectors"))
    return scope


def _item(scope: Scope, row: int) -> dict[str, Any]:
    event_id = f"bench-{row}"
    texts = {"summary": "bench", "rationale": "", "source_event_id": event_id, "origin_tier": 1}
    return {"id": item_id_for("default", event_id), "scope_id": scope.id, **texts}


def _vector(item_id: Any, scope: Scope, model_id: int, vector: Vectors) -> dict[str, Any]:
    row = {"item_id": item_id, "model_id": model_id, "scope_id": scope.id, "active": True, "terms_total": 1}
    return row | {"origin_tier": 1, "embedding": HalfVector(vector)}


async def _cluster(engine: AsyncEngine, scope: Scope, model_id: int) -> tuple[int, float, float]:
    """Clusters, CPU seconds, and the longest stall of the event loop in ms."""
    store = ConsolidatorStore(engine, Inbox(engine, TIMEOUT_SECONDS))
    async with engine.connect() as connection:
        backend = await _find_backend(connection)
    started, served = time.process_time(), _cpu_seconds(backend)
    async with _watched_loop() as stall:
        candidates = await store.find_candidates(scope, model_id, 0)
        clusters = await asyncio.to_thread(cluster_candidates, candidates, COSINE_MIN, SIZE_MIN)
    own = time.process_time() - started
    return len(clusters), own + _cpu_seconds(backend) - served, stall.longest_ms


async def _join(engine: AsyncEngine, scope: Scope) -> tuple[int, float]:
    async with engine.connect() as connection:
        await connection.execute(sa.text("set max_parallel_workers_per_gather = 0"))
        backend = await _find_backend(connection)
        started = _cpu_seconds(backend)
        pairs = (await connection.execute(JOIN, {"scope": scope.id, "nearness": -COSINE_MIN})).scalar_one()
        return pairs, _cpu_seconds(backend) - started


async def _find_backend(connection: AsyncConnection) -> psutil.Process:
    """The pool has one connection, so that all statements meet the same process."""
    return psutil.Process((await connection.execute(sa.text("select pg_backend_pid()"))).scalar_one())


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@dataclass(slots=True)
class Stall:
    longest_ms: float = 0.0


@asynccontextmanager
async def _watched_loop() -> AsyncGenerator[Stall]:
    """Looks every few milliseconds whether the loop still comes by."""
    stall = Stall()

    async def tick() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(TICK_SECONDS)
            late_ms = (time.perf_counter() - before - TICK_SECONDS) * 1000
            stall.longest_ms = max(stall.longest_ms, late_ms)

    ticking = asyncio.create_task(tick())
    yield stall
    ticking.cancel()
    with suppress(asyncio.CancelledError):
        await ticking
