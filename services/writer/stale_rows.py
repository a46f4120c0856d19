"""Stored memories that the pattern set in force has not judged yet: the statements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.database import outages_as_store_unavailable
from libs.common.schema import gate_findings, gate_verdicts, memory_items


@dataclass(frozen=True, slots=True)
class StaleRow:
    id: UUID
    tenant: str
    summary: str
    rationale: str


@dataclass(frozen=True, slots=True)
class Judged:
    """What a set says of stale rows; of those that it could not scan whole it says nothing."""

    pattern_set: str
    cleared: Sequence[UUID]
    matched: Mapping[UUID, Sequence[str]]
    """Pattern labels by id."""


class StaleRows:
    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def find_ids(self, pattern_set: str, limit: int) -> Sequence[UUID]:
        """Rows that this set has neither cleared nor matched, or that another one matched, the oldest first."""
        items, findings = memory_items.c, gate_findings.c
        # Not `<>`: these two are ranges of an index, which in quiet times holds none.
        is_other_set = sa.or_(items.pattern_set < pattern_set, items.pattern_set > pattern_set)
        is_found = sa.exists().where(findings.item_id == items.id, findings.pattern_set == pattern_set)
        unjudged = sa.select(items.id).where(is_other_set, ~is_found)
        outdated = sa.select(findings.item_id).where(findings.pattern_set != pattern_set)
        query = sa.select(items.id).where(items.id.in_(unjudged.union(outdated)))
        with outages_as_store_unavailable():
            async with self._engine.connect() as connection:
                oldest = query.order_by(items.created_at, items.id).limit(limit)
                return (await connection.execute(oldest)).scalars().all()

    async def find_rows(self, ids: Sequence[UUID]) -> list[StaleRow]:
        query = sa.select(*(memory_items.c[name] for name in StaleRow.__dataclass_fields__))
        with outages_as_store_unavailable():
            async with self._engine.connect() as connection:
                rows = (await connection.execute(query.where(memory_items.c.id.in_(ids)))).mappings()
                return [StaleRow(**row) for row in rows]

    async def record(self, judged: Judged) -> None:
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                await _move_on(connection, judged.pattern_set, judged.cleared)
                for item_id, patterns in judged.matched.items():
                    await _note_finding(connection, judged.pattern_set, item_id, patterns)


async def _move_on(connection: AsyncConnection, pattern_set: str, ids: Sequence[UUID]) -> None:
    """The rows stand on the verdict of this set from now on, and nothing that an earlier one found counts."""
    items, wanted = memory_items.c, memory_items.c.id.in_(ids)
    # In one order everywhere, so that nobody who locks several rows can lock us out.
    await connection.execute(sa.select(items.id).where(wanted).order_by(items.id).with_for_update())
    verdicts = sa.select(items.tenant, items.text_sha256, sa.literal(pattern_set), sa.literal("clean")).where(wanted)
    new = insert(gate_verdicts).from_select(["tenant", "text_sha256", "pattern_set", "verdict"], verdicts.distinct())
    await connection.execute(new.on_conflict_do_nothing())
    await connection.execute(sa.update(memory_items).where(wanted).values(pattern_set=pattern_set))
    await connection.execute(sa.delete(gate_findings).where(gate_findings.c.item_id.in_(ids)))


async def _note_finding(connection: AsyncConnection, pattern_set: str, item_id: UUID, patterns: Sequence[str]) -> None:
    """Unless the row is gone by now."""
    items = memory_items.c
    found = {"pattern_set": pattern_set, "patterns": list(patterns), "found_at": sa.func.now()}
    columns = {"item_id": items.id, "tenant": items.tenant}
    values = [sa.cast(value, gate_findings.c[name].type) for name, value in found.items()]
    row = sa.select(*columns.values(), *values).where(items.id == item_id)
    new = insert(gate_findings).from_select([*columns, *found], row)
    await connection.execute(new.on_conflict_do_update(index_elements=[gate_findings.c.item_id], set_=found))
