"""A batch of rows: screened as recall would, so that nothing is paid for what is never recalled, then embedded."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from uuid import UUID

from libs.common.embedding.models import ServingModel
from libs.common.errors import EmbedderUnavailable, EmbeddingModelMismatch, EmbeddingRefused
from libs.common.gate_client import GateClient
from libs.common.vectors import Vector
from services.reembedder.rows import Batch, Row
from services.reembedder.rules import CALLS_AT_ONCE, split


@dataclass(frozen=True, slots=True)
class _Part:
    """What one call, or those that it was broken up into, gave."""

    vectors: dict[UUID, Vector] = field(default_factory=dict[UUID, Vector])
    failed: Sequence[UUID] = ()
    outage: EmbedderUnavailable | None = None


class Batching:
    def __init__(self, gate: GateClient) -> None:
        self._gate = gate

    async def embed(self, rows: Sequence[Row], model: ServingModel) -> Batch:
        """Raises GateUnavailable, EmbeddingModelMismatch. An outage of the embedder is in the batch."""
        matched = await self._find_matched(rows)
        wanted = [row for row in rows if row.id not in matched]
        parts = await asyncio.gather(*(_embed(model, part) for part in split(wanted, CALLS_AT_ONCE)))
        whole = _join(parts)
        return Batch(rows, whole.vectors, whole.failed, sorted(matched), whole.outage)

    async def _find_matched(self, rows: Sequence[Row]) -> set[UUID]:
        """What the set in force has cleared is not asked about. A row scanned in part is kept, as in recall."""
        pattern_set = await self._gate.find_pattern_set()
        unknown = sorted((row for row in rows if row.pattern_set != pattern_set), key=lambda row: row.tenant)
        matched: set[UUID] = set()
        for tenant, group in groupby(unknown, key=lambda row: row.tenant):
            screening = await self._gate.screen("recall", {str(row.id): row.text for row in group}, tenant=tenant)
            matched |= {UUID(id_) for id_ in screening.matched}
        return matched


async def _embed(model: ServingModel, rows: Sequence[Row]) -> _Part:
    """One call. A refused one is halved until the text is found that the model does not take."""
    try:
        vectors = await model.embedder.embed([row.text for row in rows])
    except EmbeddingRefused:
        if len(rows) == 1:
            return _Part(failed=[rows[0].id])
        return await _embed_halves(model, rows)
    except EmbedderUnavailable as outage:
        return _Part(outage=outage)
    if vectors.shape != (len(rows), model.background.shape[1]):
        raise EmbeddingModelMismatch(f"{model.embedder.name} makes vectors of another length than before")
    return _Part({row.id: vector for row, vector in zip(rows, vectors, strict=True)})


async def _embed_halves(model: ServingModel, rows: Sequence[Row]) -> _Part:
    return _join([await _embed(model, half) for half in split(rows, 2)])


def _join(parts: Iterable[_Part]) -> _Part:
    parts = list(parts)
    vectors = {id_: vector for part in parts for id_, vector in part.vectors.items()}
    failed = list(chain.from_iterable(part.failed for part in parts))
    return _Part(vectors, failed, next((part.outage for part in parts if part.outage), None))
