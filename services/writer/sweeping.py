"""Taking away what was kept for events that never came, or that became dead letters."""

import asyncio

import structlog

from libs.common.administered_settings import AdministeredSettings
from libs.common.domain.setting_keys import TRANSCRIPT_RETENTION_DAYS
from libs.common.errors import StoreUnavailable
from services.writer.parts import Parts

_log = structlog.get_logger("writer")

SWEEP_SECONDS = 3_600.0


class Sweeping:
    def __init__(self, parts: Parts, settings: AdministeredSettings) -> None:
        self._parts = parts
        self._settings = settings

    async def run(self) -> None:
        while True:
            await self.sweep()
            await asyncio.sleep(SWEEP_SECONDS)

    async def sweep(self) -> None:
        """Once, for every tenant; an outage leaves it to the next round."""
        try:
            for tenant in await self._parts.find_tenants():
                days = await self._settings.get(TRANSCRIPT_RETENTION_DAYS, tenant)
                if deleted := await self._parts.delete_older(tenant, days):
                    _log.info("writer.leftovers_deleted", tenant=tenant, count=deleted)
        except StoreUnavailable as error:
            _log.warning("writer.sweep_failed", reason=str(error))
