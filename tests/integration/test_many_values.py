"""Conditions over more values than Postgres takes one by one (32,767 in a statement)."""

from uuid import uuid4

import sqlalchemy as sa
from conftest import Installation

from libs.common.database import are_among, is_among
from libs.common.schema import inbox, memory_items

MANY = 40_000


async def count(installation: Installation, condition: sa.ColumnElement[bool]) -> int:
    rows = await installation.rows(sa.select(sa.func.count().label("count")).where(condition))
    return rows[0]["count"]


async def test_more_ids_than_a_statement_takes_values_are_looked_for(installation: Installation) -> None:
    assert await count(installation, is_among(memory_items.c.id, [uuid4() for _ in range(MANY)])) == 0


async def test_more_pairs_than_a_statement_takes_values_are_looked_for(installation: Installation) -> None:
    columns = (inbox.c.schema_name, inbox.c.event_id)
    assert await count(installation, are_among(columns, [("no.such", str(n)) for n in range(MANY)])) == 0


async def test_pairs_count_together_and_not_column_by_column(installation: Installation) -> None:
    columns = (sa.literal("a"), sa.literal(2))
    assert await count(installation, are_among(columns, [("a", 1), ("b", 2)])) == 0
    assert await count(installation, are_among(columns, [("a", 1), ("a", 2)])) == 1
    assert await count(installation, are_among(columns, [])) == 0
