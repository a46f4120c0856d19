"""The gate's story: a set of patterns in force, and texts held against it."""

import asyncio
from collections.abc import Sequence

import structlog
from lorebus.contracts.facts.gate import PatternQuarantined
from lorebus.contracts.gate import ScreenedText, ScreenReply, ScreenRequest, ScreenVerdict

from libs.common.errors import StoreUnavailable
from services.gate.cache import cache_key
from services.gate.crew import CrewBusy, ScanCrew
from services.gate.keeper import PatternKeeper, PatternSet
from services.gate.rules import verdict_of
from services.gate.scan import Scan
from services.gate.store import GateStore

_log = structlog.get_logger("gate")


class GateService:
    """gate.screen → what is known, the rest against every pattern → verdicts"""

    def __init__(self, store: GateStore, keeper: PatternKeeper, crew: ScanCrew) -> None:
        self._store = store
        self._keeper = keeper
        self._crew = crew
        self._reports: set[asyncio.Task[None]] = set()

    async def screen(self, request: ScreenRequest, tenant: str) -> ScreenReply:
        patterns = self._keeper.find_set()
        if patterns is None:
            return ScreenReply(status="load_failed")
        try:
            scans = await self._scan_unknown(patterns, request.tenant or tenant, request.texts)
        except CrewBusy as error:
            _log.warning("gate.texts_not_scanned", reason=str(error))
            return ScreenReply(status="load_failed")
        self._report_quarantined(scans)
        verdicts = [_build_verdict(text, scan) for text, scan in zip(request.texts, scans, strict=True)]
        return ScreenReply(status="ok", pattern_set=patterns.name, verdicts=verdicts)

    async def _scan_unknown(self, patterns: PatternSet, tenant: str, texts: Sequence[ScreenedText]) -> list[Scan]:
        """What is known of each text, and scans of the rest."""
        keys = [cache_key(tenant, text.text) for text in texts]
        known = [patterns.known.find(key) for key in keys]
        unknown = [text.text for text, scan in zip(texts, known, strict=True) if scan is None]
        fresh = iter(await self._crew.scan_all(patterns.scanner.scan, unknown))
        scans = [scan or next(fresh) for scan in known]
        for key, scan in zip(keys, scans, strict=True):
            patterns.known.keep(key, scan)
        return scans

    def _report_quarantined(self, scans: Sequence[Scan]) -> None:
        events = [
            PatternQuarantined(pattern=put_away.label, seconds=put_away.seconds)
            for scan in scans
            for put_away in scan.quarantined
        ]
        if not events:
            return
        _log.warning("gate.patterns_quarantined", patterns=[event.pattern for event in events])
        report = asyncio.create_task(self._publish(events))
        self._reports.add(report)
        report.add_done_callback(self._reports.discard)

    async def _publish(self, events: Sequence[PatternQuarantined]) -> None:
        try:
            await self._store.insert_events(events)
        except StoreUnavailable as error:
            _log.warning("gate.quarantine_not_reported", reason=str(error))


def _build_verdict(text: ScreenedText, scan: Scan) -> ScreenVerdict:
    labels = {"patterns": list(scan.matched), "watched": list(scan.watched)}
    return ScreenVerdict(id=text.id, verdict=verdict_of(scan), **labels)
