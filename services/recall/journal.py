"""The journal: what was recalled is written down after the answer went out, in batches, off its path."""

import asyncio

import structlog

from libs.common.bus.relay import Relay
from libs.common.errors import StoreUnavailable
from services.recall.store import RecallRecord, RecallStore

_log = structlog.get_logger("recall")

BACKLOG_MAX = 10_000
BATCH_MAX = 200
BATCH_SECONDS = 0.2
"""How long the first record of a batch waits for others: by then its own answer has long gone out."""


class Journal:
    """Best effort, like the seed's traces: a full or unreachable journal never costs an answer."""

    def __init__(self, store: RecallStore, relay: Relay) -> None:
        self._store = store
        self._relay = relay
        self._records: list[RecallRecord] = []
        self._noted = asyncio.Event()

    def note(self, record: RecallRecord) -> None:
        if len(self._records) >= BACKLOG_MAX:
            _log.warning("recall.record_lost", backlog=BACKLOG_MAX)
            return
        self._records.append(record)
        self._noted.set()

    async def run(self) -> None:
        while True:
            await self._noted.wait()
            await asyncio.sleep(BATCH_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        """Writes what is noted; also called once more before the service stops."""
        records, self._records = self._records, []
        self._noted.clear()
        for start in range(0, len(records), BATCH_MAX):
            await self._write(records[start : start + BATCH_MAX])

    async def _write(self, records: list[RecallRecord]) -> None:
        try:
            await self._store.insert_records(records)
        except StoreUnavailable as error:
            _log.warning("recall.records_lost", count=len(records), reason=str(error))
        else:
            self._relay.nudge()
