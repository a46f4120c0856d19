"""The rows of a walk: those that a model has not embedded, in the order of their ids, and what became of them.

Every statement goes by the registry (`libs/common/vectors`), so that no table with vectors is left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.common.errors import EmbedderUnavailable
from libs.common.schema import embedding_models, reembed_passed
from libs.common.vectors import VECTOR_TABLES, Vector, VectorTable, insert_vectors


@dataclass(frozen=True, slots=True)
class Row:
    id: UUID
    tenant: str
    text: str
    text_sha256: str
    pattern_set: str
    """The set that cleared it."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What became of a batch. `outage`: not all of it was tried, so the cursor stays."""

    rows: Sequence[Row]
    vectors: Mapping[UUID, Vector] = field(default_factory=dict[UUID, Vector])
    failed: Sequence[UUID] = ()
    matched: Sequence[UUID] = ()
    outage: EmbedderUnavailable | None = None


@dataclass(frozen=True, slots=True)
class Stale:
    rows: int
    chars: int
    total: int
    """Embedded or not."""


async def count_stale(connection: AsyncConnection, model: str) -> Stale:
    """How much a model has not embedded; one that was never asked for has embedded nothing."""
    sums = [0, 0, 0]
    model_id = sa.select(embedding_models.c.id).where(embedding_models.c.name == model).scalar_subquery()
    for table in VECTOR_TABLES:
        is_stale = _is_stale(table, model_id)
        query = sa.select(
            sa.func.count().filter(is_stale),
            sa.func.coalesce(sa.func.sum(sa.func.length(table.text)).filter(is_stale), 0),
            sa.func.count(),
        ).select_from(table.items)
        found = (await connection.execute(query)).one()
        sums = [left + int(right) for left, right in zip(sums, found, strict=True)]
    return Stale(*sums)


async def find_rows(
    connection: AsyncConnection, table: VectorTable, job_id: int, model_id: int, *, after: UUID | None, limit: int
) -> Sequence[Row]:
    """The next stale rows behind a cursor, without those that this job passed over."""
    items = table.items.c
    query = (
        sa.select(items.id, items.tenant, table.text.label("text"), items.text_sha256, items.pattern_set)
        .where(*_is_left(table, job_id, model_id))
        .order_by(items.id)
        .limit(limit)
    )
    if after is not None:
        query = query.where(items.id > after)
    return [Row(**row) for row in (await connection.execute(query)).mappings()]


async def is_complete(connection: AsyncConnection, job_id: int, model_id: int) -> bool:
    """Whether no row is left in any table: all are embedded or passed over."""
    left = [sa.exists().where(*_is_left(table, job_id, model_id)).select_from(table.items) for table in VECTOR_TABLES]
    return not (await connection.execute(sa.select(sa.or_(*left)))).scalar_one()


async def store_batch(
    connection: AsyncConnection, table: VectorTable, job_id: int, model_id: int, batch: Batch
) -> Mapping[str, int]:
    """Writes the vectors of rows that are still there with the same text; returns how many were done and the like."""
    present = await _lock_present(connection, table, batch.rows)
    vectors = [(id_, model_id, vector) for id_, vector in batch.vectors.items() if id_ in present]
    await insert_vectors(connection, table, vectors)
    passed = [
        {"job_id": job_id, "item_id": id_, "reason": reason}
        for reason, ids in (("failed", batch.failed), ("matched", batch.matched))
        for id_ in ids
        if id_ in present
    ]
    if passed:
        await connection.execute(sa.insert(reembed_passed), passed)
    counts = {"failed": sum(row["reason"] == "failed" for row in passed), "done": len(vectors)}
    return counts | {"skipped": len(passed) - counts["failed"]}


async def delete_vectors(connection: AsyncConnection, model: str, *, limit: int | None = None) -> int:
    """Of a model by its name: all, or so many of each table. Returns how many."""
    deleted = 0
    model_id = sa.select(embedding_models.c.id).where(embedding_models.c.name == model).scalar_subquery()
    for table in VECTOR_TABLES:
        key = sa.tuple_(table.vectors.c.item_id, table.vectors.c.model_id)
        some = sa.select(*table.vectors.primary_key).where(table.vectors.c.model_id == model_id).limit(limit)
        deleted += (await connection.execute(sa.delete(table.vectors).where(key.in_(some)))).rowcount
    return deleted


async def _lock_present(connection: AsyncConnection, table: VectorTable, rows: Sequence[Row]) -> set[UUID]:
    """In the order of their ids, as everybody does. Whoever changes what an item is waits for us, or we for them."""
    items = table.items.c
    hashes = {row.id: row.text_sha256 for row in rows}
    query = sa.select(items.id, items.text_sha256).where(items.id.in_(hashes)).order_by(items.id)
    locked = await connection.execute(query.with_for_update(read=True))
    return {row.id for row in locked if row.text_sha256 == hashes[row.id]}


def _is_stale(table: VectorTable, model_id: Any) -> sa.ColumnElement[bool]:
    vectors = table.vectors.c
    return ~sa.exists().where(vectors.item_id == table.items.c.id, vectors.model_id == model_id)


def _is_left(table: VectorTable, job_id: int, model_id: int) -> Sequence[sa.ColumnElement[bool]]:
    passed = reembed_passed.c
    is_passed = sa.exists().where(passed.item_id == table.items.c.id, passed.job_id == job_id)
    return _is_stale(table, model_id), ~is_passed


def next_table(name: str | None) -> VectorTable | None:
    """The one after this in the registry; the first where none is named."""
    names = [table.name for table in VECTOR_TABLES]
    following = chain(VECTOR_TABLES[names.index(name) + 1 :] if name else VECTOR_TABLES)
    return next(iter(following), None)


def get_table(name: str) -> VectorTable:
    return next(table for table in VECTOR_TABLES if table.name == name)
