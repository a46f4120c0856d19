"""The schedule: when a slot of `consolidationCron` has come, each enabled repository gets a request, once."""

import asyncio
from datetime import datetime

import structlog
from lorebus.contracts.consolidation import RequestConsolidation
from sqlalchemy.ext.asyncio import AsyncEngine

from libs.common.administered_settings import AdministeredSettings
from libs.common.bus.relay import Relay
from libs.common.database import outages_as_store_unavailable
from libs.common.domain.cron import find_last_slot
from libs.common.domain.setting_cascade import resolve_value
from libs.common.domain.setting_keys import CONSOLIDATION_CRON
from libs.common.errors import StoreUnavailable
from services.consolidator.rules import Scope, choose_enabled
from services.consolidator.slots import find_tenants, get_now, take_slot
from services.consolidator.store import insert_requests

_log = structlog.get_logger("consolidator")

ACTOR = "schedule"


class Scheduling:
    """Runs until cancelled, in any number of copies."""

    def __init__(self, engine: AsyncEngine, settings: AdministeredSettings, relay: Relay, seconds: float) -> None:
        self._engine = engine
        self._settings = settings
        self._relay = relay
        self._seconds = seconds

    async def run(self) -> None:
        while True:
            try:
                await self.fire()
            except StoreUnavailable as error:
                _log.warning("consolidator.schedule_postponed", reason=str(error))
            await asyncio.sleep(self._seconds)

    async def fire(self, now: datetime | None = None) -> int:
        """Queues what is due. Returns how many requests; `now` is Postgres' own by default, in UTC."""
        with outages_as_store_unavailable():
            async with self._engine.connect() as connection:
                moment = now or await get_now(connection)
                tenants = await find_tenants(connection)
            return sum([await self._fire_for(tenant, moment) for tenant in tenants])

    async def _fire_for(self, tenant: str, now: datetime) -> int:
        stored = await self._settings.get_stored(tenant)
        cron = resolve_value(CONSOLIDATION_CRON, stored)
        slot = find_last_slot(cron, now)
        if slot is None:
            return 0
        async with self._engine.begin() as connection:
            due = choose_enabled(await take_slot(connection, tenant, cron, slot), stored)
            await insert_requests(connection, tenant, [build_request(scope, slot) for scope in due])
        if due:
            self._relay.nudge()
            _log.info("consolidator.slot_fired", tenant=tenant, slot=slot.isoformat(), requests=len(due))
        return len(due)


def build_request(scope: Scope, slot: datetime) -> RequestConsolidation:
    """The same slot always makes the same event."""
    event_id = f"schedule:{scope.id}:{slot:%Y-%m-%dT%H:%MZ}"
    return RequestConsolidation(event_id=event_id, repository=scope.key, actor=ACTOR)
