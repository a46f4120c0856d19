"""Answers by running services: what an agent gets, over the bus.

The memories are put into the tables as cleared by the pattern set in force, so that what is measured is recall: neither
what the writer cuts and replaces, nor what the gate refuses.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

from lorebus import Lorebus, LorebusError
from sqlalchemy.ext.asyncio import AsyncEngine

from cli.evaluations.recall.answering import RANKED_MAX, Answer
from cli.evaluations.recall.data import Memory
from cli.one_machine import Machine
from cli.sample_machine import PATIENCE_SECONDS
from cli.sample_rows import Sample, Shelf, store_samples, vacuum
from libs.common.bus.connection import create_broker
from libs.common.database import create_engine
from libs.common.embedding.models import ServingModel, open_model
from libs.common.embedding.port import Embedder
from libs.common.gate_client import GateClient


class RecallDegraded(LorebusError):
    """A recall did not do what is measured, so its answer says nothing."""


class OverBus:
    def __init__(self, memory: Lorebus, engine: AsyncEngine, model: ServingModel, pattern_set: str) -> None:
        self._memory = memory
        self._engine = engine
        self._model = model
        self._pattern_set = pattern_set
        self._names: dict[str, str] = {}

    @classmethod
    @asynccontextmanager
    async def open(cls, machine: Machine, embedder: Embedder) -> AsyncGenerator[Self]:
        engine = create_engine(machine.database_url, "eval", connections_max=2, timeout_seconds=60)
        broker = create_broker(machine.nats_url, "eval")
        gate = GateClient(await broker.connect(), PATIENCE_SECONDS)
        try:
            async with Lorebus(machine.nats_url, name="lorebus-eval") as memory:
                yield cls(memory, engine, await open_model(engine, embedder), await gate.find_pattern_set())
        finally:
            await broker.stop()
            await engine.dispose()

    async def store(self, memories: Sequence[Memory]) -> None:
        if not memories:
            return
        vectors = await self._model.embedder.embed([memory.text for memory in memories])
        for repository in sorted({memory.repository for memory in memories}):
            rows = [row for row, memory in enumerate(memories) if memory.repository == repository]
            samples = [_sample(memories[row]) for row in rows]
            self._names |= {str(sample.id): memories[row].id for row, sample in zip(rows, samples, strict=True)}
            shelf = Shelf(repository, self._model.id, self._pattern_set)
            await store_samples(self._engine, shelf, samples, vectors[rows])
        await vacuum(self._engine)

    async def answer(self, text: str, repository: str) -> Answer:
        ranked = await self._ask(text, repository, limit=RANKED_MAX, similarity_min=0)
        return Answer(ranked, await self._ask(text, repository))

    async def _ask(self, text: str, repository: str, **limits: Any) -> list[str]:
        reply = await self._memory.recall(text, repository=repository, deadline_seconds=PATIENCE_SECONDS, **limits)
        if reply.degraded:
            raise RecallDegraded(f"a recall was degraded by {reply.reason}: nothing was measured")
        return [self._names[item.id] for item in reply.items]


def _sample(memory: Memory) -> Sample:
    """Two sets may name their items alike."""
    return Sample(f"{memory.repository} {memory.id}", memory.text, memory.beside)
