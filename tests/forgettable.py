"""Memories to forget: written by the services, and merged as the consolidator would, with texts of the test's own."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import sqlalchemy as sa
from conftest import Installation
from lorebus import TappedEvent
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.common.active_items import activate, deactivate
from libs.common.domain.memory import screened_text, text_hash
from libs.common.schema import gate_verdicts, memory_items, memory_sources, memory_vectors, scope_terms, scopes

ACTOR = "tests"


async def save(installation: Installation, repository: str, summary: str, **fields: Any) -> UUID:
    known = {"repository": repository, "writer": "shellStep", "summary": summary, "supersede": False}
    reply = await installation.memory.save_note(**known | fields, deadline_seconds=15)
    assert reply.error is None, reply
    return UUID(reply.id)


async def save_several(installation: Installation, repository: str, count: int) -> list[UUID]:
    return [
        await save(installation, repository, f"Lesson {n}: the parser needs flag number {n}.") for n in range(count)
    ]


async def merge(installation: Installation, *ids: UUID, **changes: Any) -> UUID:
    """One memory that stands for these from now on."""
    async with installation.engine.begin() as connection:
        first = (await connection.execute(sa.select(memory_items).where(memory_items.c.id == ids[0]))).mappings().one()
        row = dict(first) | {"id": uuid4(), "source_event_id": uuid4().hex, "summary": f"Merged: {uuid4().hex}."}
        row |= {"metadata": {"consolidatedFrom": list(map(str, ids))}, "authors": [], "consolidated_at": None} | changes
        row["text_sha256"] = text_hash(screened_text(row["summary"], row["rationale"]))
        names = ("tenant", "text_sha256", "pattern_set", "verdict")
        verdict = {name: row[name] for name in names}
        await connection.execute(insert(gate_verdicts).values(verdict).on_conflict_do_nothing())
        await connection.execute(sa.insert(memory_items).values(row))
        await _copy_vector(connection, ids[0], row["id"])
        lineage = [{"merged_id": row["id"], "source_id": id_} for id_ in ids]
        await connection.execute(sa.insert(memory_sources), lineage)
        await _hide(connection, row["scope_id"], ids)
        await activate(connection, row["scope_id"], [row["id"]])
    return row["id"]


async def _copy_vector(connection: AsyncConnection, source: UUID, target: UUID) -> None:
    names = [column.name for column in memory_vectors.columns if column.name not in ("item_id", "active")]
    vector = sa.select(sa.literal(target), sa.false(), *(memory_vectors.c[name] for name in names))
    new = sa.insert(memory_vectors).from_select(
        ["item_id", "active", *names], vector.where(memory_vectors.c.item_id == source)
    )
    await connection.execute(new)


async def _hide(connection: AsyncConnection, scope_id: int, ids: Sequence[UUID]) -> None:
    hidden = sa.update(memory_items).where(memory_items.c.id.in_(ids), memory_items.c.consolidated_at.is_(None))
    active = sa.select(memory_vectors.c.item_id).where(memory_vectors.c.item_id.in_(ids), memory_vectors.c.active)
    shown = (await connection.execute(active.distinct())).scalars().all()
    await connection.execute(hidden.values(consolidated_at=sa.func.now()))
    await deactivate(connection, scope_id, shown)


async def forget(installation: Installation, **targets: Any) -> dict[str, Any]:
    """Sends the command; returns what the taps were told of it."""
    published = await installation.memory.forget(**{"actor": ACTOR, **targets})
    return await installation.facts("deleted", seconds=30, event_id=published.event_id)


async def find(installation: Installation, *ids: UUID) -> dict[UUID, dict[str, Any]]:
    rows = await installation.rows(sa.select(memory_items).where(memory_items.c.id.in_(ids)))
    return {row["id"]: row for row in rows}


async def active_ids(installation: Installation, repository: str) -> set[UUID]:
    """As recall sees them."""
    query = sa.select(memory_vectors.c.item_id).join(scopes, scopes.c.id == memory_vectors.c.scope_id)
    rows = await installation.rows(query.where(scopes.c.key == repository, memory_vectors.c.active))
    return {row["item_id"] for row in rows}


async def is_counted_right(installation: Installation, repository: str) -> bool:
    """Whether the scope counts its active memories, and its words, as they stand there."""
    [scope] = await installation.rows(sa.select(scopes.c.id, scopes.c.items_active).filter_by(key=repository))
    items = await installation.rows(sa.select(memory_items).filter_by(scope_id=scope["id"]))
    active = [item for item in items if not (item["superseded_at"] or item["consolidated_at"] or item["held_at"])]
    words: dict[str, int] = {}
    for item in active:
        for term in item["terms"]:
            words[term] = words.get(term, 0) + 1
    known = await installation.rows(
        sa.select(scope_terms.c.term, scope_terms.c.documents).filter_by(scope_id=scope["id"])
    )
    counted = {row["term"]: row["documents"] for row in known if row["documents"]}
    shown = await active_ids(installation, repository)
    return (scope["items_active"], counted, shown) == (len(active), words, {item["id"] for item in active})


def ids_of(fact: dict[str, Any] | TappedEvent, name: str) -> list[UUID]:
    payload = fact.payload if isinstance(fact, TappedEvent) else fact
    return [UUID(id_) for id_ in payload[name]]
