"""The gate's statements: patterns and facts, nothing else."""

from collections.abc import Sequence

import sqlalchemy as sa
from lorebus.contracts.envelope import DEFAULT_TENANT
from lorebus.contracts.events import MemoryEvent
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from libs.common.administered_settings import AdministeredSettings
from libs.common.database import outages_as_store_unavailable
from libs.common.domain.setting_keys import REGEX_SCAN_BUDGET_MS
from libs.common.errors import StoreUnavailable
from libs.common.outbox import insert_events
from libs.common.schema import gate_patterns
from services.gate.patterns import Pattern


class GateStore:
    def __init__(self, engine: AsyncEngine, settings: AdministeredSettings) -> None:
        self._engine = engine
        self._settings = settings

    async def upsert_builtin(self, patterns: Sequence[Pattern]) -> None:
        """Brings the built-in patterns to this version. One that an administrator disabled stays disabled."""
        rows = [
            {
                "label": pattern.label,
                "source": pattern.source,
                "flags": pattern.flags,
                "must_match": list(pattern.must_match),
                "must_not_match": list(pattern.must_not_match),
                "is_built_in": True,
            }
            # In one order everywhere, so that two gates that start at once cannot lock each other out.
            for pattern in sorted(patterns, key=lambda pattern: pattern.label)
        ]
        new = insert(gate_patterns).values(rows)
        changed = {name: new.excluded[name] for name in ("source", "flags", "must_match", "must_not_match")}
        upsert = new.on_conflict_do_update(
            index_elements=[gate_patterns.c.label],
            set_={**changed, "updated_at": sa.func.now()},
            where=sa.and_(
                gate_patterns.c.is_built_in,
                sa.tuple_(gate_patterns.c.source, gate_patterns.c.flags).is_distinct_from(
                    sa.tuple_(new.excluded.source, new.excluded.flags)
                ),
            ),
        )
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                await connection.execute(upsert)

    async def find_active(self) -> list[Pattern]:
        """The pattern set in force, by label."""
        query = sa.select(gate_patterns).where(gate_patterns.c.is_active).order_by(gate_patterns.c.label)
        with outages_as_store_unavailable():
            async with self._engine.connect() as connection:
                rows = (await connection.execute(query)).all()
        return [
            Pattern(row.label, row.source, row.flags, tuple(row.must_match), tuple(row.must_not_match)) for row in rows
        ]

    async def get_scan_budget_ms(self) -> float:
        """One for all tenants, since they share the patterns. Built in while the settings cannot be read."""
        try:
            return await self._settings.get(REGEX_SCAN_BUDGET_MS, DEFAULT_TENANT)
        except StoreUnavailable:  # logged where it was looked for; a gate without settings still screens
            return REGEX_SCAN_BUDGET_MS.default

    async def insert_events(self, events: Sequence[MemoryEvent]) -> None:
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                await insert_events(connection, events)
