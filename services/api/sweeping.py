"""Sessions that nobody closed: a host that crashed, a step that ended its pipeline early."""

import asyncio

import structlog

from libs.common.bus.relay import Relay
from libs.common.errors import StoreUnavailable
from services.api.store import SWEPT_MAX, ApiStore

_log = structlog.get_logger("api")


class Sweeping:
    """Every copy of the service may sweep: each session is closed once."""

    def __init__(self, store: ApiStore, relay: Relay, *, idle_seconds: float, every_seconds: float) -> None:
        self._store = store
        self._relay = relay
        self._idle_seconds = idle_seconds
        self._every_seconds = every_seconds

    async def run(self) -> None:
        while True:
            try:
                await self.sweep()
            except StoreUnavailable as error:
                _log.warning("api.sweep_postponed", reason=str(error))
            await asyncio.sleep(self._every_seconds)

    async def sweep(self) -> int:
        """Closes what is idle. Returns how many sessions that were."""
        total = 0
        while count := await self._store.close_idle_sessions(self._idle_seconds):
            total += count
            self._relay.nudge()
            if count < SWEPT_MAX:
                break
        if total:
            _log.info("api.sessions_swept", count=total)
        return total
