"""How long a recall takes, against the least that any question on this bus takes.

Everything runs in this process and on one event loop, as `lorebus up` runs it: the services, the client, and the
empty service on a broker connection of its own. Postgres and nats-server are processes of their own, durable.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any

from lorebus import Lorebus, LorebusError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from sqlalchemy.ext.asyncio import AsyncEngine

from cli.benchmarks.filling import Filling
from cli.benchmarks.parts import LIMIT, TENANT, Parts, Prepared, subscribe_echoes
from cli.benchmarks.runs import Failure
from cli.benchmarks.timing import Timing, measure
from cli.one_machine import Machine
from cli.output import notes
from cli.sample_machine import PATIENCE_SECONDS, sample_machine
from libs.common.administered_settings import AdministeredSettings
from libs.common.bus.connection import create_broker
from libs.common.database import create_engine, create_pool
from libs.common.domain.lexical import count_documents, tokenize
from libs.common.domain.setting_keys import SUPERSEDE_THRESHOLD
from libs.common.embedding.choose import create_embedder
from libs.common.embedding.models import background_texts, open_model
from libs.common.gate_client import GateClient
from libs.common.settings import CommonSettings
from services.recall.store import RecallStore

REPOSITORY = "bench/large"
SMALLER = {f"bench/small-{size}": size for size in (3, 10, 20, 40, 80)}
QUESTIONS_MAX = 50
WARM_UP = 30
SEED = 20_261_130
FRESH_FACTOR = 4
KNOWN_FACTOR = 3
SUPERSESSION_OFF = 1.0


class TooFewQuestions(LorebusError):
    """No question found enough lessons."""


@dataclass(frozen=True, slots=True)
class Report:
    """What was measured. The ratios set a recall against its bound: 1 or less is good."""

    lessons: int
    repeats: int
    timings: dict[str, Timing]

    @property
    def fresh_bound_ms(self) -> float:
        """Of a question that nobody has asked before."""
        return FRESH_FACTOR * self.timings["empty"].p50_ms + self.timings["embed"].p50_ms

    @property
    def fresh_ratio(self) -> float:
        return self.timings["fresh"].p50_ms / self.fresh_bound_ms

    @property
    def known_bound_ms(self) -> float:
        """Of one that was asked before, so that it is not embedded again."""
        return KNOWN_FACTOR * self.timings["empty"].p50_ms

    @property
    def known_ratio(self) -> float:
        return self.timings["recall"].p50_ms / self.known_bound_ms

    @property
    def holds(self) -> bool:
        return max(self.fresh_ratio, self.known_ratio) <= 1

    def as_json(self) -> dict[str, Any]:
        return {
            "lessons": self.lessons,
            "repeats": self.repeats,
            "parts": {name: asdict(timing) for name, timing in self.timings.items()},
            "fresh": {"bound_ms": self.fresh_bound_ms, "ratio": self.fresh_ratio},
            "known": {"bound_ms": self.known_bound_ms, "ratio": self.known_ratio},
            "ok": self.holds,
        }


async def bench_recall(lessons: int, repeats: int) -> Report:
    async with sample_machine("bench", ("gate", "writer", "recall")) as machine, _parts(machine) as (parts, engine):
        await _keep_all(engine)
        failures = await Filling(parts.memory, engine).fill({REPOSITORY: lessons, **SMALLER}, SEED)
        asked = await _choose_questions(parts, failures[REPOSITORY])
        return Report(lessons, repeats, await _measure(parts, asked, repeats))


@asynccontextmanager
async def _parts(machine: Machine) -> AsyncGenerator[tuple[Parts, AsyncEngine]]:
    settings = CommonSettings()
    engine = create_engine(machine.database_url, "bench", connections_max=2)
    pool = await create_pool(machine.database_url, "bench", connections_max=2)
    broker = create_broker(machine.nats_url, "bench")
    await subscribe_echoes(broker)
    try:
        async with Lorebus(machine.nats_url, name="lorebus-bench") as memory:
            parts = Parts(
                memory=memory,
                gate=GateClient(await broker.connect(), PATIENCE_SECONDS),
                store=RecallStore(engine, pool, PATIENCE_SECONDS),
                model=await open_model(engine, create_embedder(settings.embedder, settings.embedding_dimensions)),
                words=count_documents(tokenize(text) for text in background_texts()),
                repository=REPOSITORY,
            )
            yield parts, engine
    finally:
        await broker.stop()
        await pool.close()
        await engine.dispose()


async def _keep_all(engine: AsyncEngine) -> None:
    """Lessons of one kind look alike: supersession would thin them out."""
    settings = AdministeredSettings(engine)
    await settings.set(SUPERSEDE_THRESHOLD.name, SUPERSESSION_OFF, tenant=TENANT, actor="bench")


async def _choose_questions(parts: Parts, failures: Sequence[Failure]) -> list[Prepared]:
    """Questions that find the full number of lessons, spread over the scope."""
    chosen: list[Prepared] = []
    for failure in failures[:: max(1, len(failures) // (2 * QUESTIONS_MAX))]:
        prepared = await parts.prepare(failure.question)
        if len(prepared.found) == LIMIT:
            chosen.append(prepared)
    if not chosen:
        raise TooFewQuestions(f"no question finds {LIMIT} lessons among {len(failures)}: ask for more with --lessons")
    return chosen[:QUESTIONS_MAX]


async def _measure(parts: Parts, asked: Sequence[Prepared], repeats: int) -> dict[str, Timing]:
    columns = (TextColumn("measuring"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as progress:
        bar = progress.add_task("measuring", total=WARM_UP + repeats)
        return await measure(parts.of(asked), repeats, WARM_UP, lambda: progress.advance(bar))
