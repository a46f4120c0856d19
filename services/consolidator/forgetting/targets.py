"""Which memories a `memory.delete` means, and what is buried with them."""

from collections.abc import Mapping, Sequence
from uuid import UUID

import sqlalchemy as sa
from lorebus.contracts.memory import DeleteMemory
from lorebus.contracts.subjects import MEMORY_WRITE, RUN_FINISHED
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.common.domain.memory import event_key
from libs.common.schema import entries, memory_items, memory_sources, scopes
from libs.common.tombstones import Kind


async def find_targets(connection: AsyncConnection, tenant: str, command: DeleteMemory) -> Sequence[UUID]:
    """Named ids as they stand, known or not, in the order in which they were named."""
    if command.ids is not None:
        return command.ids
    wanted = sa.select(memory_items.c.id).where(memory_items.c.tenant == tenant, _is_meant(command))
    return (await connection.execute(wanted.order_by(memory_items.c.created_at, memory_items.c.id))).scalars().all()


def find_events(command: DeleteMemory) -> list[str]:
    """The events that it names (`event_key`), of whatever kind: an id alone does not tell."""
    names = command.event_ids or []
    return [event_key(schema_name, name) for schema_name in (RUN_FINISHED, MEMORY_WRITE) for name in names]


def find_graves(command: DeleteMemory) -> Mapping[Kind, Sequence[str]]:
    """Beside items and events, which are buried as they are found."""
    if command.person is not None:
        return {"person": [command.person]}
    return {"session": [command.session_id]} if command.session_id is not None else {}


async def count_unattributed(connection: AsyncConnection, tenant: str) -> int:
    """Channel memories that name nobody: what no erasure by person reaches (seed, limitations)."""
    items = memory_items.c
    names_nobody = sa.and_(items.authors == sa.text("'{}'"), items.metadata["userSlackId"].astext.is_(None))
    query = sa.select(sa.func.count()).where(_stands_in(tenant, "channel-memory"), names_nobody, ~_is_merged())
    return int(await connection.scalar(query) or 0)


def _is_meant(command: DeleteMemory) -> sa.ColumnElement[bool]:
    items = memory_items.c
    tenant = items.tenant
    if command.person is not None:
        said = sa.or_(items.authors.contains([command.person]), items.metadata["userSlackId"].astext == command.person)
        # As a target a merge would take along what others said; by its sources it goes without them.
        return sa.and_(_stands_in(tenant, "channel-memory"), said, ~_is_merged())
    if command.session_id is not None:
        said_there = sa.select(entries.c.item_id).where(entries.c.session_id == command.session_id)
        return items.id.in_(said_there)
    return items.source_event_id.in_(find_events(command))


def _stands_in(tenant: str | sa.ColumnElement[str], kind: str) -> sa.ColumnElement[bool]:
    own = sa.select(scopes.c.id).where(scopes.c.tenant == tenant, scopes.c.kind == kind)
    return memory_items.c.scope_id.in_(own)


def _is_merged() -> sa.ColumnElement[bool]:
    return sa.exists().where(memory_sources.c.merged_id == memory_items.c.id)
