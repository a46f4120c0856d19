"""Screening what was found, with as few questions to the gate as safety allows.

A row names the pattern set that cleared its exact text (the database holds it to that). While the gate is known to
serve that very set, asking again would tell nothing new; nor where the writer, going through stored rows, has found
that this set matches: such an item is withheld. What only other sets judged is asked about. A gate that has not
answered for two seconds counts as away, and then every item is asked about, which an absent gate does not answer.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from libs.common.errors import GateUnavailable
from libs.common.gate_client import GateClient, Screening
from services.recall.rules import Found, find_flagged, needs_screening

_log = structlog.get_logger("recall")

LOOK_SECONDS = 0.5
FRESH_SECONDS = 2.0


class Screener:
    """Knows which pattern set the gate serves, from a look every half second."""

    def __init__(self, gate: GateClient, clock: Callable[[], float] = time.monotonic) -> None:
        self._gate = gate
        self._clock = clock
        self._pattern_set: str | None = None
        self._seen_at = 0.0

    async def watch(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Asks for the pattern set in force. One that could not be loaded is none."""
        try:
            self._pattern_set = await self._gate.find_pattern_set()
            self._seen_at = self._clock()
        except GateUnavailable as error:
            if self._pattern_set is not None:
                _log.warning("recall.gate_unavailable", reason=str(error))
            self._pattern_set = None

    async def screen(self, found: Sequence[Found], tenant: str) -> Screening:
        """Every item alone. Raises GateUnavailable when an item that is not cleared could not be judged."""
        served = self._served_set()
        flagged, unknown = find_flagged(found, served), needs_screening(found, served)
        if not unknown:
            return Screening("", matched=flagged, incomplete=frozenset())
        texts = {str(item.id): item.summary for item in unknown}
        screening = await self._gate.screen("recall", texts, tenant=tenant)
        return replace(screening, matched={**flagged, **screening.matched})

    def _served_set(self) -> str | None:
        return self._pattern_set if self._clock() - self._seen_at <= FRESH_SECONDS else None
