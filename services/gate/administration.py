"""Changes of the stored patterns, each in one transaction with its audit rows and its fact, after a trial.

Changes come one after the other, so that a trial is about the very set that is then stored; readers do not wait.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from lorebus.contracts.envelope import DEFAULT_TENANT
from lorebus.contracts.facts.gate import PatternsChanged
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.database import outages_as_store_unavailable
from libs.common.outbox import insert_events
from libs.common.schema import audit, gate_patterns
from services.gate.patterns import Pattern
from services.gate.register import (
    ChangeRefused,
    Difference,
    Register,
    Registered,
    active_patterns,
    find_differences,
    find_new_faults,
    name_register,
    with_activity,
    with_added,
    with_built_in,
    without,
)

ENTITY_KIND = "pattern"
GATE = "gate"
"""The actor where a version of the gate brings its own patterns."""

Change = Callable[[Register], Register]


@dataclass(frozen=True, slots=True)
class Changed:
    """What a change came to. Without differences everything was so already, and the set is not named."""

    differences: Sequence[Difference]
    pattern_set: str


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    at: datetime
    actor: str
    action: str
    label: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class PatternAdministration:
    """The patterns of one installation; all tenants share them. Every method raises StoreUnavailable."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def find_register(self) -> Register:
        with outages_as_store_unavailable():
            async with self._engine.connect() as connection:
                return await _find_register(connection)

    async def add(self, patterns: Sequence[Pattern], *, actor: str) -> Changed:
        """All or none. Raises ChangeRefused."""
        return await self._make(lambda register: with_added(register, patterns), actor, is_tried=True)

    async def set_active(self, label: str, is_active: bool, *, actor: str) -> Changed:
        """Raises ChangeRefused."""
        return await self._make(lambda register: with_activity(register, label, is_active), actor, is_tried=True)

    async def remove(self, label: str, *, actor: str) -> Changed:
        """Raises ChangeRefused."""
        return await self._make(lambda register: without(register, label), actor, is_tried=True)

    async def bring_built_in(self, patterns: Sequence[Pattern]) -> Changed:
        """Without a trial, which comes before the gate serves them: a gate that starts must not fail here."""
        return await self._make(lambda register: with_built_in(register, patterns), GATE, is_tried=False)

    async def find_history(self, entries_max: int) -> list[HistoryEntry]:
        """The newest first."""
        names = ("at", "actor", "action", "before", "after")
        query = (
            sa.select(audit.c.entity_id.label("label"), *(audit.c[name] for name in names))
            .where(audit.c.tenant == DEFAULT_TENANT, audit.c.entity_kind == ENTITY_KIND)
            .order_by(audit.c.id.desc())
            .limit(entries_max)
        )
        with outages_as_store_unavailable():
            async with self._engine.connect() as connection:
                return [HistoryEntry(**row) for row in (await connection.execute(query)).mappings()]

    async def _make(self, change: Change, actor: str, *, is_tried: bool) -> Changed:
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                await connection.execute(sa.text("lock table gate_patterns in share row exclusive mode"))
                before = await _find_register(connection)
                after = change(before)
                differences = find_differences(before, after)
                if not differences:
                    return Changed((), "")
                if is_tried:
                    await _try(before, after)
                await _write(connection, differences, actor)
                return Changed(differences, await _tell(connection, before, after))


async def _try(before: Register, after: Register) -> None:
    faults = await asyncio.to_thread(find_new_faults, before, after)
    if faults:
        reasons = "\n".join(f"- {fault.reason}" for fault in faults)
        raise ChangeRefused(f"nothing is changed, since the new set does not pass its trial:\n{reasons}")


async def _find_register(connection: AsyncConnection) -> Register:
    rows = (await connection.execute(sa.select(gate_patterns))).all()
    return {row.label: Registered(read_pattern(row), row.is_built_in, row.is_active) for row in rows}


def read_pattern(row: sa.Row[Any]) -> Pattern:
    examples = tuple(row.must_match), tuple(row.must_not_match)
    return Pattern(row.label, row.source, row.flags, *examples, severity=row.severity)


async def _write(connection: AsyncConnection, differences: Sequence[Difference], actor: str) -> None:
    # A changed row is written anew: nothing refers to it.
    old = [difference.label for difference in differences if difference.before]
    new = [_as_row(difference.after) for difference in differences if difference.after]
    await connection.execute(sa.delete(gate_patterns).where(gate_patterns.c.label.in_(old)))
    if new:
        await connection.execute(sa.insert(gate_patterns), new)
    await connection.execute(sa.insert(audit), [_audit_row(difference, actor) for difference in differences])


async def _tell(connection: AsyncConnection, before: Register, after: Register) -> str:
    """The name of the new set; a fact where it is another one, which examples alone do not make it."""
    pattern_set = await asyncio.to_thread(name_register, after)
    if pattern_set != await asyncio.to_thread(name_register, before):
        await insert_events(connection, [PatternsChanged(pattern_set=pattern_set, count=len(active_patterns(after)))])
    return pattern_set


def _as_row(registered: Registered) -> dict[str, Any]:
    state = {"is_built_in": registered.is_built_in, "is_active": registered.is_active}
    examples = {name: list(getattr(registered.pattern, name)) for name in ("must_match", "must_not_match")}
    return {**asdict(registered.pattern), **examples, **state}


def _audit_row(difference: Difference, actor: str) -> dict[str, Any]:
    return {
        "tenant": DEFAULT_TENANT,
        "actor": actor,
        "action": f"{ENTITY_KIND}.{difference.action}",
        "entity_kind": ENTITY_KIND,
        "entity_id": difference.label,
        "before": _as_row(difference.before) if difference.before else sa.null(),
        "after": _as_row(difference.after) if difference.after else sa.null(),
    }
