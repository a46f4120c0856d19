"""Forgetting memories, in the tables: the walk over their lineage, and everything that was kept of them.

    targets = await lock_targets(connection, tenant, find)
    forgotten = await forget_items(connection, tenant, Targets(targets))

Both in one transaction, whose owner adds the audit row. `domain/lineage` decides.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from lorebus.contracts.facts.writer import LessonSkipped
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.common.active_items import activate, deactivate, delete_unused_words
from libs.common.database import is_among, lock_scope
from libs.common.domain.lineage import Forgetting, Item, Lineage, plan_forgetting
from libs.common.errors import StoreUnavailable
from libs.common.event_copies import StoppedEvent, delete_copies
from libs.common.outbox import insert_events
from libs.common.schema import audit, gate_verdicts, memory_items, memory_sources
from libs.common.tombstones import FORGOTTEN, bury, lock_tombstones

IDS_AT_ONCE_MAX = 5_000
MEMORY_EDIT = "memory.edit"
"""The action of audit rows that hold the words of a memory before and after."""

FindTargets = Callable[[AsyncConnection], Awaitable[Sequence[UUID]]]


@dataclass(frozen=True, slots=True)
class Targets:
    """What is to be forgotten, beside whatever the walk finds."""

    ids: Sequence[UUID]
    events: Sequence[str] = ()
    """By `event_key`: these go even where they made no memory."""
    until: datetime | None = None
    """When it was asked for, by the broker's clock."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """`deleted`: the targets first. `restored`: what comes back, as spec 7 counts it."""

    deleted: Sequence[UUID]
    restored: Sequence[UUID]


@dataclass(frozen=True, slots=True)
class _Row:
    """A linked memory: never its text."""

    item: Item
    scope_id: int
    terms: Sequence[str]
    source_event_id: str
    text_sha256: str


async def lock_targets(connection: AsyncConnection, tenant: str, find: FindTargets) -> Sequence[UUID]:
    """The targets, with nothing of the tenant's being written any more.

    Raises StoreUnavailable where targets came up in another scope meanwhile: its lock would come out of order.
    """
    scopes = await _find_scopes(connection, tenant, await find(connection))
    for scope_id in sorted(scopes):
        await lock_scope(connection, scope_id)
    await lock_tombstones(connection, tenant)
    targets = await find(connection)
    if not await _find_scopes(connection, tenant, targets) <= scopes:
        raise StoreUnavailable("more memories to forget were written meanwhile")
    return targets


async def preview_forgetting(connection: AsyncConnection, tenant: str, targets: Sequence[UUID]) -> Forgetting:
    """What `forget_items` would do now. Raises LineageTooDeep."""
    _, lineage = await _read_lineage(connection, tenant, targets)
    return plan_forgetting(lineage, targets)


async def forget_items(connection: AsyncConnection, tenant: str, targets: Targets) -> Forgotten:
    """Deletes the targets and what hangs on them, restores what they hid, buries both. Behind `lock_targets`.

    Ids of other tenants are not touched. Raises LineageTooDeep.
    """
    rows, lineage = await _read_lineage(connection, tenant, targets.ids, is_locking=True)
    plan = plan_forgetting(lineage, targets.ids)
    gone = [rows[id_] for id_ in plan.deleted]
    events = [*targets.events, *(row.source_event_id for row in gone)]
    items = map(str, [*targets.ids, *plan.deleted])
    await bury(connection, tenant, {"item": items, "event": events}, targets.until)
    if gone:
        await _rearrange(connection, rows, plan)
        await _delete_words(connection, gone)
        await delete_unused_verdicts(connection, tenant, {row.text_sha256 for row in gone})
        await _delete_edits(connection, tenant, plan.deleted)
    stopped = await delete_copies(connection, tenant, events)
    await insert_events(connection, [_skipped(tenant, event) for event in stopped if event.repository])
    return Forgotten(plan.deleted, plan.restored)


def _linked(tenant: str, targets: Sequence[UUID]) -> sa.CTE:
    """The tenant's targets, and every memory that merges link to them, whichever way."""
    own = sa.select(memory_items.c.id).where(memory_items.c.tenant == tenant, is_among(memory_items.c.id, targets))
    linked = own.cte("linked", recursive=True)
    merged, source = memory_sources.c.merged_id, memory_sources.c.source_id
    other = sa.select(sa.case((merged == linked.c.id, source), else_=merged))
    return linked.union(other.join_from(linked, memory_sources, sa.or_(merged == linked.c.id, source == linked.c.id)))


async def _find_scopes(connection: AsyncConnection, tenant: str, targets: Sequence[UUID]) -> set[int]:
    linked = sa.select(_linked(tenant, targets).c.id)
    query = sa.select(memory_items.c.scope_id).where(memory_items.c.id.in_(linked)).distinct()
    return set((await connection.execute(query)).scalars())


async def _read_lineage(
    connection: AsyncConnection, tenant: str, targets: Sequence[UUID], *, is_locking: bool = False
) -> tuple[dict[UUID, _Row], Lineage]:
    items, linked = memory_items.c, sa.select(_linked(tenant, targets).c.id)
    columns = ("superseded_by_id", "superseded_at", "consolidated_at", "held_at", "scope_id", "terms")
    query = sa.select(items.id, *(items[name] for name in columns), items.source_event_id, items.text_sha256)
    query = query.where(sa.or_(items.id.in_(linked), items.superseded_by_id.in_(linked))).order_by(items.id)
    if is_locking:
        query = query.with_for_update()
    rows = {row.id: _row(row) for row in await connection.execute(query)}
    edges = sa.select(memory_sources).where(memory_sources.c.merged_id.in_(linked))
    sources: dict[UUID, list[UUID]] = {}
    for edge in await connection.execute(edges):
        sources.setdefault(edge.merged_id, []).append(edge.source_id)
    return rows, Lineage({id_: row.item for id_, row in rows.items()}, sources)


def _row(row: sa.Row[Any]) -> _Row:
    item = Item(
        id=row.id,
        superseded_by=row.superseded_by_id,
        is_superseded=row.superseded_at is not None,
        is_consolidated=row.consolidated_at is not None,
        is_held=row.held_at is not None,
    )
    return _Row(item, row.scope_id, row.terms, row.source_event_id, row.text_sha256)


async def _rearrange(connection: AsyncConnection, rows: Mapping[UUID, _Row], plan: Forgetting) -> None:
    """In this order: counts while the rows stand, columns before the delete, and last what is active again."""
    active = [id_ for id_ in plan.deleted if rows[id_].item.is_active]
    for scope_id, ids in _by_scope(rows, active):
        await deactivate(connection, scope_id, ids)
    await _clear(connection, plan.unsuperseded, superseded_at=None, superseded_by_id=None)
    await _clear(connection, plan.unconsolidated, consolidated_at=None)
    await connection.execute(sa.delete(memory_items).where(is_among(memory_items.c.id, plan.deleted)))
    for scope_id, ids in _by_scope(rows, plan.reactivated):
        await activate(connection, scope_id, ids)


async def _clear(connection: AsyncConnection, ids: Sequence[UUID], **columns: None) -> None:
    await connection.execute(sa.update(memory_items).where(is_among(memory_items.c.id, ids)).values(columns))


def _by_scope(rows: Mapping[UUID, _Row], ids: Iterable[UUID]) -> Iterator[tuple[int, list[UUID]]]:
    ordered = sorted(ids, key=lambda id_: rows[id_].scope_id)
    for scope_id, group in groupby(ordered, key=lambda id_: rows[id_].scope_id):
        found = list(group)
        for start in range(0, len(found), IDS_AT_ONCE_MAX):
            yield scope_id, found[start : start + IDS_AT_ONCE_MAX]


async def _delete_words(connection: AsyncConnection, gone: Sequence[_Row]) -> None:
    for scope_id, rows in groupby(sorted(gone, key=lambda row: row.scope_id), key=lambda row: row.scope_id):
        words = sorted({term for row in rows for term in row.terms})
        await delete_unused_words(connection, scope_id, words)


async def delete_unused_verdicts(connection: AsyncConnection, tenant: str, hashes: Collection[str]) -> None:
    """Which texts were cleared, unless another memory says the same."""
    verdicts, items = gate_verdicts.c, memory_items.c
    is_used = sa.exists().where(items.tenant == verdicts.tenant, items.text_sha256 == verdicts.text_sha256)
    is_forgotten = is_among(verdicts.text_sha256, sorted(hashes))
    unused = sa.delete(gate_verdicts).where(verdicts.tenant == tenant, is_forgotten, ~is_used)
    await connection.execute(unused)


async def _delete_edits(connection: AsyncConnection, tenant: str, ids: Sequence[UUID]) -> None:
    """What administrators had put in the place of what; that they did stays."""
    edits = sa.update(audit).where(audit.c.tenant == tenant, audit.c.entity_kind == "memory")
    edits = edits.where(audit.c.action == MEMORY_EDIT, is_among(audit.c.entity_id, [str(id_) for id_ in ids]))
    await connection.execute(edits.values(before=sa.null(), after=sa.null()))


def _skipped(tenant: str, event: StoppedEvent) -> LessonSkipped:
    return LessonSkipped(
        tenant=tenant,
        event_id=event.event_id,
        run_id=event.run_id,
        repository=event.repository or "",
        reason=FORGOTTEN,
    )
