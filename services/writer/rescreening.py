"""Screening what is stored again, in the background, when another pattern set is in force.

Recall does not wait for it: it asks the gate about every item that the set in force has not cleared. This spares recall
the asking, and shows administrators what the new set matches (`lorebus pending list`). A matched row stays where it is
and is not recalled; a later set that clears it lets it be recalled again. Several copies may go over the same rows at
once, which comes to the same.
"""

import asyncio
from collections.abc import Sequence
from itertools import groupby
from uuid import UUID

import structlog

from libs.common.domain.memory import screened_text
from libs.common.errors import GateUnavailable, StoreUnavailable
from libs.common.gate_client import GateClient, Screening
from services.writer.stale_rows import Judged, StaleRow, StaleRows

_log = structlog.get_logger("writer")

BATCH_MAX = 100
IDS_MAX = 10_000
"""Looked for at once: a look reads all stale rows to find the oldest."""
PAUSE_SECONDS = 0.1
"""Between batches: writes and recalls ask the same gate."""


class Rescreening:
    """`seconds`: how often the set in force is asked for."""

    def __init__(self, rows: StaleRows, gate: GateClient, seconds: float) -> None:
        self._rows = rows
        self._gate = gate
        self._seconds = seconds

    async def run(self) -> None:
        while True:
            try:
                await self.sweep()
            except (GateUnavailable, StoreUnavailable) as error:
                _log.info("writer.rescreening_paused", reason=str(error))
            await asyncio.sleep(self._seconds)

    async def sweep(self) -> None:
        """All stale rows once. Raises GateUnavailable and StoreUnavailable; what was judged by then is kept."""
        pattern_set = await self._gate.find_pattern_set()
        judged = 1
        while judged and (ids := await self._rows.find_ids(pattern_set, IDS_MAX)):
            judged = 0
            for start in range(0, len(ids), BATCH_MAX):
                judged += await self._rescreen(ids[start : start + BATCH_MAX], pattern_set)
                await asyncio.sleep(PAUSE_SECONDS)

    async def _rescreen(self, ids: Sequence[UUID], pattern_set: str) -> int:
        """How many of them were judged."""
        found = sorted(await self._rows.find_rows(ids), key=lambda row: row.tenant)
        total = 0
        for tenant, rows in groupby(found, key=lambda row: row.tenant):
            judged = await self._judge(list(rows), tenant)
            if judged.pattern_set != pattern_set:
                raise GateUnavailable("another pattern set came into force")
            await self._rows.record(judged)
            total += len(judged.cleared) + len(judged.matched)
            if judged.matched:
                _log.warning("writer.stored_items_matched", tenant=tenant, ids=[str(id_) for id_ in judged.matched])
        return total

    async def _judge(self, rows: Sequence[StaleRow], tenant: str) -> Judged:
        texts = {key: text for row in rows for key, text in _texts(row).items()}
        return judge(rows, await self._gate.screen("recall", texts, tenant=tenant))


def judge(rows: Sequence[StaleRow], screening: Screening) -> Judged:
    matched: dict[UUID, list[str]] = {}
    cleared: list[UUID] = []
    for row in rows:
        keys = _texts(row).keys()
        if labels := {label for key in keys for label in screening.matched.get(key, ())}:
            matched[row.id] = sorted(labels)
        elif not keys & screening.incomplete:
            cleared.append(row.id)
    return Judged(screening.pattern_set, cleared, matched)


def _texts(row: StaleRow) -> dict[str, str]:
    """As at the write: the summary is what recall gives out, and both texts as one are what the verdict is for."""
    return {f"{row.id}/summary": row.summary, f"{row.id}/lesson": screened_text(row.summary, row.rationale)}
