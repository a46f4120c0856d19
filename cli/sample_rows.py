"""Samples put into the tables as the writer leaves memories there, past the writer and its gate.

For measuring what reads them: nothing is cut, refused or superseded, and thousands go in within seconds. Whoever does
this has servers of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.active_items import activate
from libs.common.domain.lexical import tokenize
from libs.common.domain.memory import TIER_SYSTEM_EVIDENCE, item_id_for, screened_text, text_hash
from libs.common.schema import gate_verdicts, memory_items, scopes
from libs.common.vectors import MEMORY, insert_vectors

TENANT = "default"
ROWS_A_TRANSACTION = 1_000
TABLES = ("memory_items", "memory_vectors", "memory_terms", "scope_terms", "scopes")

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Sample:
    """`beside` is looked up and not embedded, as the rationale of a lesson is."""

    name: str
    text: str
    beside: str = ""

    @property
    def id(self) -> UUID:
        return item_id_for(TENANT, self.name)


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where samples go: a repository, and which model and pattern set are in force."""

    repository: str
    model_id: int
    pattern_set: str


async def store_samples(engine: AsyncEngine, shelf: Shelf, samples: Sequence[Sample], vectors: Vectors) -> None:
    """Each becomes an active lesson that the set in force has cleared."""
    for start in range(0, len(samples), ROWS_A_TRANSACTION):
        part = slice(start, start + ROWS_A_TRANSACTION)
        async with engine.begin() as connection:
            await _store(connection, shelf, samples[part], vectors[part])


async def vacuum(engine: AsyncEngine) -> None:
    """What autovacuum does within a minute; a measurement must not depend on whether it has come by."""
    async with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        for table in TABLES:
            await connection.execute(sa.text(f"vacuum (analyze) {table}"))


async def _store(connection: AsyncConnection, shelf: Shelf, samples: Sequence[Sample], vectors: Vectors) -> None:
    scope_id = await _get_scope(connection, shelf.repository)
    rows = [_item(sample, scope_id, shelf.pattern_set) for sample in samples]
    verdicts = [{name: row[name] for name in ("tenant", "text_sha256", "pattern_set")} for row in rows]
    await connection.execute(
        insert(gate_verdicts).on_conflict_do_nothing(), [verdict | {"verdict": "clean"} for verdict in verdicts]
    )
    await connection.execute(sa.insert(memory_items), rows)
    embedded = [(sample.id, shelf.model_id, vector) for sample, vector in zip(samples, vectors, strict=True)]
    await insert_vectors(connection, MEMORY, embedded)
    await activate(connection, scope_id, [row["id"] for row in rows])


async def _get_scope(connection: AsyncConnection, repository: str) -> int:
    name = {"tenant": TENANT, "kind": "swe-lessons", "key": repository}
    await connection.execute(insert(scopes).values(name).on_conflict_do_nothing())
    return (await connection.execute(sa.select(scopes.c.id).filter_by(**name))).scalar_one()


def _item(sample: Sample, scope_id: int, pattern_set: str) -> dict[str, Any]:
    words = tokenize(f"{sample.text}\n{sample.beside}")
    return {
        "id": sample.id,
        "tenant": TENANT,
        "scope_id": scope_id,
        "summary": sample.text,
        "rationale": sample.beside,
        "origin_tier": TIER_SYSTEM_EVIDENCE,
        "terms": list(dict.fromkeys(words)),
        "source_event_id": sample.name,
        "text_sha256": text_hash(screened_text(sample.text, sample.beside)),
        "pattern_set": pattern_set,
        "evidence_at": datetime.now(UTC),
    }
