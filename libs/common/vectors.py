"""The registry of tables with vectors: what each embeds, and what of an item stands beside its vector.

A change of the embedding model walks every table that is listed here. One that is not would silently go dark, so a test
compares this list with the schema.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa
from pgvector import HalfVector as HalfVectorValue
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.common.schema import HalfVector, memory_items, memory_vectors

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True)
class VectorTable:
    """`vectors` has a row for each (item_id, model_id); `items` has id, tenant, text_sha256 and pattern_set."""

    vectors: sa.Table
    items: sa.Table
    text: sa.Column[str]
    """What is embedded."""
    carried: Mapping[str, sa.ColumnElement[Any]]
    """Columns of `vectors`, each with what it is of the item: so it is right also where there was no vector yet."""

    @property
    def name(self) -> str:
        return self.vectors.name


_items = memory_items.c

MEMORY = VectorTable(
    vectors=memory_vectors,
    items=memory_items,
    text=_items.summary,
    carried={
        "scope_id": _items.scope_id,
        "active": sa.and_(_items.held_at.is_(None), _items.consolidated_at.is_(None), _items.superseded_at.is_(None)),
        "created_at": sa.func.coalesce(_items.confirmed_at, _items.created_at),
        "terms_total": sa.func.cardinality(_items.terms),
        "origin_tier": _items.origin_tier,
    },
)

VECTOR_TABLES: tuple[VectorTable, ...] = (MEMORY,)
"""In the order in which a re-embedding walks them."""


async def insert_vectors(
    connection: AsyncConnection, table: VectorTable, vectors: Sequence[tuple[UUID, int, Vector]]
) -> None:
    """(item, model, vector) rows, unless they are there; the item says the rest.

    Whoever does this for items of others locks them first: a vector has to be active just when its item is.
    """
    if not vectors:
        return
    items, columns = table.items.c, table.vectors.c
    row = sa.select(
        items.id,
        sa.bindparam("new_model_id", type_=columns.model_id.type),
        sa.cast(sa.bindparam("new_embedding", type_=HalfVector()), HalfVector()),
        *table.carried.values(),
    ).where(items.id == sa.bindparam("of_item"))
    new = insert(table.vectors).from_select(["item_id", "model_id", "embedding", *table.carried], row)
    rows = [
        {"of_item": item_id, "new_model_id": model_id, "new_embedding": HalfVectorValue(vector)}
        for item_id, model_id, vector in vectors
    ]
    await connection.execute(new.on_conflict_do_nothing(), rows)
