"""The gate's story: a set of patterns, read again every minute, and texts held against it."""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import structlog
from lorebus.contracts.events import PatternQuarantined
from lorebus.contracts.gate import ScreenedText, ScreenReply, ScreenRequest, ScreenVerdict

from libs.common.errors import StoreUnavailable
from services.gate.cache import VerdictCache, cache_key
from services.gate.patterns import Pattern, PatternRejected, compile_pattern, pattern_set_version
from services.gate.quarantine import Quarantine
from services.gate.rules import verdict_of
from services.gate.scan import SCAN_VERSION, Scan, Scanner
from services.gate.settings import GateSettings
from services.gate.store import GateStore

_log = structlog.get_logger("gate")

INLINE_CHARS_MAX = 8_000
"""About half a millisecond of scanning."""


@dataclass(frozen=True)
class _PatternSet:
    version: str
    budget_ms: float
    scanner: Scanner
    known: VerdictCache
    loaded_at: float


class GateService:
    """gate.screen → what is known, the rest against every pattern → verdicts"""

    def __init__(self, store: GateStore, settings: GateSettings) -> None:
        self._store = store
        self._settings = settings
        self._quarantine = Quarantine(settings.gate_quarantine_seconds)
        self._set: _PatternSet | None = None
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="gate-scan")
        self._reports: set[asyncio.Task[None]] = set()

    async def screen(self, request: ScreenRequest, tenant: str) -> ScreenReply:
        pattern_set = self._set
        # A set that could not be read for too long may lack what was added since: then nothing is screened.
        if pattern_set is None or time.monotonic() - pattern_set.loaded_at > 2 * self._settings.gate_reload_seconds:
            return ScreenReply(status="load_failed")
        scans = await self._scan_unknown(pattern_set, request.tenant or tenant, request.texts)
        self._report_quarantined(scans)
        verdicts = [_build_verdict(text, scan) for text, scan in zip(request.texts, scans, strict=True)]
        return ScreenReply(status="ok", pattern_set=pattern_set.version, verdicts=verdicts)

    async def _scan_unknown(self, patterns: _PatternSet, tenant: str, texts: Sequence[ScreenedText]) -> list[Scan]:
        """What is known of each text, and scans of the rest."""
        keys = [cache_key(tenant, text.text) for text in texts]
        known = [patterns.known.find(key) for key in keys]
        unknown = [text for text, scan in zip(texts, known, strict=True) if scan is None]
        fresh = iter(await self._scan(patterns.scanner, unknown))
        scans = [scan or next(fresh) for scan in known]
        for key, scan in zip(keys, scans, strict=True):
            patterns.known.keep(key, scan)
        return scans

    async def _scan(self, scanner: Scanner, texts: Sequence[ScreenedText]) -> list[Scan]:
        """Off the event loop, unless the texts are so short that the way there takes longer than the scan."""
        if sum(len(text.text) for text in texts) <= INLINE_CHARS_MAX:
            return _scan_all(scanner, texts)
        return await asyncio.get_running_loop().run_in_executor(self._threads, _scan_all, scanner, texts)

    async def keep_loaded(self) -> None:
        """Reads the pattern set again and again; the last good one serves while the store is away."""
        while True:
            await asyncio.sleep(self._settings.gate_reload_seconds)
            try:
                await self.load()
            except StoreUnavailable as error:
                _log.warning("gate.patterns_not_loaded", reason=str(error))

    async def load(self) -> None:
        patterns = _usable(await self._store.find_active())
        budget_ms = await self._store.get_scan_budget_ms()
        version = f"{SCAN_VERSION}-{pattern_set_version(patterns)}"
        last = self._set
        if last is not None and (last.version, last.budget_ms) == (version, budget_ms):
            self._set = replace(last, loaded_at=time.monotonic())
            return
        # What a whole scan found holds for any budget.
        known = last.known if last is not None and last.version == version else VerdictCache()
        scanner = Scanner(patterns, budget_seconds=budget_ms / 1000, quarantine=self._quarantine)
        self._set = _PatternSet(version, budget_ms, scanner, known, time.monotonic())
        _log.info("gate.patterns_loaded", pattern_set=version, count=len(patterns), budget_ms=budget_ms)

    def _report_quarantined(self, scans: Sequence[Scan]) -> None:
        events = [
            PatternQuarantined(pattern=label, seconds=self._settings.gate_quarantine_seconds)
            for scan in scans
            for label in scan.quarantined
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


def _scan_all(scanner: Scanner, texts: Sequence[ScreenedText]) -> list[Scan]:
    now = time.monotonic()
    return [scanner.scan(text.text, now) for text in texts]


def _build_verdict(text: ScreenedText, scan: Scan) -> ScreenVerdict:
    return ScreenVerdict(id=text.id, verdict=verdict_of(scan), patterns=list(scan.matched))


def _usable(patterns: Sequence[Pattern]) -> list[Pattern]:
    """Those that compile; one that does not is skipped with a log line (spec 3.1)."""
    usable: list[Pattern] = []
    for pattern in patterns:
        try:
            compile_pattern(pattern)
        except PatternRejected as error:
            _log.error("gate.pattern_skipped", pattern=pattern.label, reason=str(error))
        else:
            usable.append(pattern)
    return usable
