"""Slots of the schedule in the tables: a row a repository holds the last one, so that no two copies fire the same.

A slot is taken in the transaction that queues its requests. A slot that passed while nobody ran is taken once, later;
of several the last. A repository younger than the slot has nothing to do with it, and another cron line counts from
when it is first seen: it fires no slot of the time before.
"""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from lorebus.errors import LorebusError
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.database import outages_as_store_unavailable
from libs.common.schema import audit, consolidation_schedules, scopes
from services.consolidator.rules import Scope

_IS_LESSONS = scopes.c.kind == "swe-lessons"


class RepositoryUnknown(LorebusError):
    """Nothing was written for this repository."""


async def get_now(connection: AsyncConnection) -> datetime:
    """By Postgres' clock, which all copies share."""
    return (await connection.execute(sa.select(sa.func.now()))).scalar_one()


async def find_tenants(connection: AsyncConnection) -> list[str]:
    query = sa.select(scopes.c.tenant).where(_IS_LESSONS).distinct().order_by(scopes.c.tenant)
    return list((await connection.execute(query)).scalars())


async def take_slot(connection: AsyncConnection, tenant: str, cron: str, slot: datetime) -> list[Scope]:
    """The repositories that this slot was not fired for yet; it is from now on."""
    await _adopt_line(connection, tenant, cron, slot)
    schedules = consolidation_schedules.c
    joined = sa.outerjoin(scopes, consolidation_schedules, schedules.scope_id == scopes.c.id)
    # In one order, so that no two copies wait for each other.
    open_ones = (
        sa.select(scopes.c.id, sa.literal(cron), sa.literal(slot, sa.DateTime(timezone=True)))
        .select_from(joined)
        .where(_IS_LESSONS, scopes.c.tenant == tenant, scopes.c.created_at < slot)
        .where(sa.or_(schedules.scope_id.is_(None), schedules.slot_at < slot))
        .order_by(scopes.c.id)
    )
    new = insert(consolidation_schedules).from_select(["scope_id", "cron", "slot_at"], open_ones)
    taken = new.on_conflict_do_update(
        index_elements=[schedules.scope_id],
        set_={"slot_at": new.excluded.slot_at},
        where=schedules.slot_at < new.excluded.slot_at,
    ).returning(schedules.scope_id, schedules.is_enabled)
    ids = [row.scope_id for row in await connection.execute(taken) if row.is_enabled]
    columns = [scopes.c[name] for name in Scope.__dataclass_fields__]
    rows = await connection.execute(sa.select(*columns).where(scopes.c.id.in_(ids)).order_by(scopes.c.id))
    return [Scope(**row) for row in rows.mappings()]


async def _adopt_line(connection: AsyncConnection, tenant: str, cron: str, slot: datetime) -> None:
    """Never back: two copies that see the change at different times must not open a slot again."""
    schedules = consolidation_schedules.c
    other = sa.update(consolidation_schedules).where(
        schedules.scope_id == scopes.c.id, scopes.c.tenant == tenant, schedules.cron.is_distinct_from(cron)
    )
    await connection.execute(other.values(cron=cron, slot_at=sa.func.greatest(schedules.slot_at, slot)))


async def set_enabled(engine: AsyncEngine, tenant: str, repository: str, *, is_enabled: bool, actor: str) -> None:
    """Takes a repository into the schedule or out of it, with an audit row. Raises RepositoryUnknown."""
    query = sa.select(scopes.c.id).where(_IS_LESSONS, scopes.c.tenant == tenant, scopes.c.key == repository)
    with outages_as_store_unavailable():
        async with engine.begin() as connection:
            scope_id = (await connection.execute(query)).scalar_one_or_none()
            if scope_id is None:
                raise RepositoryUnknown(f"nothing was written for {repository} yet")
            new = insert(consolidation_schedules).values(
                scope_id=scope_id, is_enabled=is_enabled, slot_at=sa.func.now()
            )
            # What passed meanwhile was not missed.
            later = sa.func.greatest(consolidation_schedules.c.slot_at, new.excluded.slot_at)
            changed = {"is_enabled": is_enabled, "slot_at": later}
            await connection.execute(
                new.on_conflict_do_update(index_elements=[consolidation_schedules.c.scope_id], set_=changed)
            )
            await connection.execute(sa.insert(audit).values(_entry(tenant, repository, is_enabled, actor)))


def _entry(tenant: str, repository: str, is_enabled: bool, actor: str) -> dict[str, Any]:
    entry = {"tenant": tenant, "actor": actor, "action": "consolidation.schedule"}
    return entry | {"entity_kind": "repository", "entity_id": repository, "after": {"is_enabled": is_enabled}}
