"""What one run was given by recall, and what was written from it (spec 5, run page)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.schema import memory_items, recall_log

LessonState = Literal["active", "superseded", "consolidated", "held", "deleted"]


@dataclass(frozen=True, slots=True)
class RunLesson:
    """`agents`: who was given it, in the order in which they first were; empty for a lesson that the run wrote.

    A lesson that was deleted since has an id and nothing else.
    """

    id: UUID
    state: LessonState
    agents: tuple[str, ...] = ()
    failure_type: str | None = None
    summary: str | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RunLessons:
    recalled: Sequence[RunLesson]
    written: Sequence[RunLesson]


UNNAMED_AGENT = "unnamed"


async def find_run_lessons(engine: AsyncEngine, tenant: str, run_id: str) -> RunLessons:
    """Each recalled lesson once, in the order in which it was first given."""
    async with engine.connect() as connection:
        agents = await _find_recalled(connection, tenant, run_id)
        known = {item.id: item for item in await _find_items(connection, tenant, memory_items.c.id.in_(agents))}
        written = await _find_items(connection, tenant, memory_items.c.run_id == run_id)
    recalled = [replace(known.get(id_, RunLesson(id_, "deleted")), agents=names) for id_, names in agents.items()]
    return RunLessons(recalled, written)


async def _find_recalled(connection: AsyncConnection, tenant: str, run_id: str) -> dict[UUID, tuple[str, ...]]:
    """The agents by lesson, from what recall wrote down; a recall that was not written down is not listed."""
    query = sa.select(recall_log.c.agent, recall_log.c.item_ids).order_by(recall_log.c.id)
    given: dict[UUID, dict[str, None]] = {}
    for row in await connection.execute(query.filter_by(tenant=tenant, run_id=run_id)):
        for id_ in row.item_ids:
            given.setdefault(id_, {})[row.agent or UNNAMED_AGENT] = None
    return {id_: tuple(names) for id_, names in given.items()}


async def _find_items(connection: AsyncConnection, tenant: str, wanted: sa.ColumnElement[bool]) -> list[RunLesson]:
    items = memory_items.c
    state = sa.case(
        (items.superseded_at.is_not(None), "superseded"),
        (items.consolidated_at.is_not(None), "consolidated"),
        (items.held_at.is_not(None), "held"),
        else_="active",
    )
    query = sa.select(items.id, state.label("state"), items.failure_type, items.summary, items.created_at)
    query = query.where(items.tenant == tenant, wanted).order_by(items.created_at, items.id)
    return [RunLesson(**row) for row in (await connection.execute(query)).mappings()]
