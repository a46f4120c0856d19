"""When the dead bytes of the memory tables leave the database's files.

A deleted row stays in its file until VACUUM frees its place, and its bytes until something else is written there or the
table is rewritten. So VACUUM alone bounds nothing: a table is rewritten when more than a fifth of it is dead, and in
time for what a delete has promised. A rewrite locks its table while it runs, so recall answers empty meanwhile.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.administered_settings import AdministeredSettings
from libs.common.domain.setting_keys import PHYSICAL_ERASURE_DAYS
from libs.common.schema import (
    audit,
    dead_letters,
    entries,
    evidence_parts,
    gate_verdicts,
    memory_items,
    memory_terms,
    memory_vectors,
    model_answers,
    scope_terms,
)

TABLES = tuple(
    table.name
    for table in (
        memory_items,
        memory_vectors,
        memory_terms,
        scope_terms,
        entries,
        evidence_parts,
        model_answers,
        dead_letters,
        gate_verdicts,
    )
)
"""Where the words of memories lie, or what is made of them."""

DEAD_SHARE_MAX = 0.2
PROMISE_SHARE = 0.5
"""Of the promised time: rewritten once so much of it has passed, which leaves room for a night that was missed."""
LOCK_SECONDS = 5
FORGOT, REWROTE = "memory.forget", "memory.rewrite"

Why = Literal["asked for", "dead share", "promise"]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows as Postgres estimates them, before the vacuum."""

    name: str
    live: int
    dead: int

    @property
    def dead_share(self) -> float:
        return self.dead / max(1, self.live + self.dead)


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """`why`: it was rewritten, and for this reason; None: it was vacuumed."""

    table: Table
    why: Why | None


def choose_rewrite(
    table: Table, *, is_asked: bool, oldest_forgotten: timedelta | None, promise: timedelta
) -> Why | None:
    """`oldest_forgotten`: how long ago the first delete since the last rewrite was; None: there was none."""
    if is_asked:
        return "asked for"
    if table.dead_share > DEAD_SHARE_MAX:
        return "dead share"
    return "promise" if oldest_forgotten is not None and oldest_forgotten >= PROMISE_SHARE * promise else None


async def vacuum(engine: AsyncEngine, *, rewrite: bool, actor: str) -> list[Vacuumed]:
    """Every memory table. Raises sqlalchemy's errors where a table stays locked by others."""
    async with engine.connect() as plain:
        connection = await plain.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(sa.text(f"set lock_timeout = '{LOCK_SECONDS}s'"))
        forgotten, promise = await _find_oldest_forgotten(connection), await _find_promise(connection, engine)
        done = [
            Vacuumed(table, choose_rewrite(table, is_asked=rewrite, oldest_forgotten=forgotten, promise=promise))
            for table in await _find_tables(connection)
        ]
        for one in done:
            await connection.execute(
                sa.text(f'vacuum {"(full, analyze)" if one.why else "(analyze)"} "{one.table.name}"')
            )
        if done and all(one.why for one in done):
            await _note_rewrite(connection, actor)
    return done


async def _find_tables(connection: AsyncConnection) -> Sequence[Table]:
    query = "select relname, n_live_tup, n_dead_tup from pg_stat_user_tables where relname = any(:names)"
    rows = (await connection.execute(sa.text(query), {"names": list(TABLES)})).all()
    found = {name: Table(name, live, dead) for name, live, dead in rows}
    return [found[name] for name in TABLES if name in found]


async def _find_oldest_forgotten(connection: AsyncConnection) -> timedelta | None:
    """Of all tenants, since everything was last rewritten."""
    rewritten = sa.select(sa.func.coalesce(sa.func.max(audit.c.at), sa.text("'-infinity'"))).where(
        audit.c.action == REWROTE
    )
    deletes = audit.c.action.in_((FORGOT, "memory.refuse"))
    first = sa.select(sa.func.min(audit.c.at)).where(deletes, audit.c.at > rewritten.scalar_subquery())
    at = await connection.scalar(first)
    return None if at is None else datetime.now(UTC) - at


async def _find_promise(connection: AsyncConnection, engine: AsyncEngine) -> timedelta:
    """The shortest that any tenant was given."""
    tenants = (await connection.execute(sa.select(audit.c.tenant).where(audit.c.action == FORGOT).distinct())).scalars()
    settings = AdministeredSettings(engine)
    days = [await settings.get(PHYSICAL_ERASURE_DAYS, tenant) for tenant in {"default", *tenants}]
    return timedelta(days=min(days))


async def _note_rewrite(connection: AsyncConnection, actor: str) -> None:
    row = {"tenant": "default", "actor": actor, "action": REWROTE, "entity_kind": "tables", "entity_id": "memory"}
    await connection.execute(sa.insert(audit).values(row))
