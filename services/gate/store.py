"""The gate's statements: patterns and facts, nothing else."""

from collections.abc import Sequence

import sqlalchemy as sa
from lorebus.contracts.envelope import DEFAULT_TENANT
from lorebus.contracts.facts.fact import MemoryEvent
from sqlalchemy.ext.asyncio import AsyncEngine

from libs.common.administered_settings import AdministeredSettings
from libs.common.database import outages_as_store_unavailable
from libs.common.domain.setting_keys import REGEX_SCAN_BUDGET_MS
from libs.common.errors import StoreUnavailable
from libs.common.outbox import insert_events
from libs.common.schema import gate_patterns
from services.gate.administration import PatternAdministration, read_pattern
from services.gate.patterns import Pattern

_FINGERPRINT = sa.text("select md5(coalesce(string_agg(row::text, '' order by label), '')) from gate_patterns as row")


class GateStore:
    def __init__(self, engine: AsyncEngine, settings: AdministeredSettings) -> None:
        self._engine = engine
        self._settings = settings
        self._administration = PatternAdministration(engine)

    async def bring_built_in(self, patterns: Sequence[Pattern]) -> list[str]:
        """Brings the built-in patterns to this version. Labels of those that an administrator's pattern displaces."""
        await self._administration.bring_built_in(patterns)
        added = {
            label for label, entry in (await self._administration.find_register()).items() if not entry.is_built_in
        }
        return [pattern.label for pattern in patterns if pattern.label in added]

    async def find_fingerprint(self) -> str:
        """Another one when any row is another, whoever changed it. A fraction of the cost of reading them all."""
        with outages_as_store_unavailable():
            async with self._engine.connect() as connection:
                return str((await connection.execute(_FINGERPRINT)).scalar_one())

    async def find_active(self) -> list[Pattern]:
        """The stored pattern set, by label."""
        query = sa.select(gate_patterns).where(gate_patterns.c.is_active).order_by(gate_patterns.c.label)
        with outages_as_store_unavailable():
            async with self._engine.connect() as connection:
                return [read_pattern(row) for row in (await connection.execute(query)).all()]

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
