"""The pattern set in force: looked for every second, tried before it is served, swapped whole.

A changed set is compiled and tried in a thread while the last one serves. One that does not pass its trial is left
alone until it changes again; so a bad row in the table can neither switch the gate off nor make it refuse everything.
A gate that starts with such a set has none, and screens nothing: better no memory than an unscreened one.
"""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog
from lorebus.contracts.facts.gate import PatternsRejected

from libs.common.errors import StoreUnavailable
from services.gate.cache import VerdictCache
from services.gate.patterns import Pattern
from services.gate.quarantine import Quarantine
from services.gate.rules import name_set
from services.gate.scan import Scanner
from services.gate.settings import GateSettings
from services.gate.store import GateStore
from services.gate.trial import Fault, part_usable, try_patterns

_log = structlog.get_logger("gate")

LOOK_SECONDS = 1.0
SETTLED_SECONDS = 3.0
"""How long a set has been in force before it is made fast."""


@dataclass(frozen=True, slots=True)
class PatternSet:
    name: str
    labels: Mapping[str, str]
    """By the key under which a quarantine remembers a pattern."""
    scanner: Scanner
    known: VerdictCache


@dataclass(frozen=True, slots=True)
class _Stored:
    """What a set is made of; while it stays the same there is nothing to do."""

    fingerprint: str
    budget_ms: float


@dataclass(frozen=True, slots=True)
class _Made:
    """What came of a stored set: a scanner, unless it has faults."""

    name: str
    labels: Mapping[str, str]
    skipped: Sequence[Fault]
    faults: Sequence[Fault]
    scanner: Scanner | None


class PatternKeeper:
    """Keeps one set, and knows until when it may be served."""

    def __init__(self, store: GateStore, settings: GateSettings) -> None:
        self._store = store
        self._settings = settings
        self._quarantine = Quarantine(settings.gate_quarantine_seconds)
        self._held: frozenset[str] = frozenset()
        self._stored: _Stored | None = None
        self._set: PatternSet | None = None
        self._looked_at = 0.0
        self._is_away = False
        self._taken_at = 0.0
        self._unprepared: PatternSet | None = None
        self._preparing: threading.Thread | None = None

    def find_set(self) -> PatternSet | None:
        """The set in force. One that could not be looked at for too long may lack what was added since: none then."""
        is_fresh = time.monotonic() - self._looked_at <= 2 * self._settings.gate_reload_seconds
        return self._set if is_fresh else None

    async def keep_loaded(self) -> None:
        """Looks again and again; the last good set serves while the store is away."""
        while True:
            await asyncio.sleep(min(LOOK_SECONDS, self._settings.gate_reload_seconds))
            try:
                await self.load()
            except StoreUnavailable as error:
                self._note_away(error)
            self._note_released()
            self._prepare_if_settled()

    async def load(self) -> None:
        """Takes what is stored into service, if it is another set and passes. Raises StoreUnavailable."""
        # The fingerprint first: a change between the two reads is then seen at the next look.
        stored = _Stored(await self._store.find_fingerprint(), await self._store.get_scan_budget_ms())
        if stored != self._stored:
            made = await asyncio.to_thread(_make, await self._store.find_active(), stored.budget_ms, self._quarantine)
            await self._take(made)
            self._stored = stored
        self._looked_at = time.monotonic()
        self._is_away = False

    async def _take(self, made: _Made) -> None:
        for fault in made.skipped:
            _log.error("gate.pattern_skipped", pattern=fault.label, reason=fault.reason)
        if made.scanner is None:
            await self._reject(made)
            return
        # What a whole scan found holds for any budget.
        known = self._set.known if self._set and self._set.name == made.name else VerdictCache()
        self._set = PatternSet(made.name, made.labels, made.scanner, known)
        _log.info("gate.patterns_loaded", pattern_set=made.name, count=len(made.labels))
        self._unprepared, self._taken_at = self._set, time.monotonic()

    def _prepare_if_settled(self) -> None:
        """Makes scans fast, which costs seconds of CPU: once for changes that come one after the other."""
        is_settled = time.monotonic() - self._taken_at >= SETTLED_SECONDS
        is_busy = self._preparing is not None and self._preparing.is_alive()
        if self._unprepared is None or is_busy or not is_settled:
            return
        # A daemon, since nothing waits for it.
        self._preparing = threading.Thread(target=_prepare, args=(self._unprepared,), name="gate-prepare", daemon=True)
        self._preparing.start()
        self._unprepared = None

    async def _reject(self, made: _Made) -> None:
        labels = sorted({fault.label for fault in made.faults if fault.label})
        in_force = self._set.name if self._set else None
        # Labels alone: a reason may quote an example. `lorebus patterns check` tells them.
        _log.error("gate.patterns_rejected", pattern_set=made.name, patterns=labels, in_force=in_force)
        fact = PatternsRejected(pattern_set=made.name, patterns=labels, faults=len(made.faults))
        await self._store.insert_events([fact])

    def _note_away(self, error: StoreUnavailable) -> None:
        """Once for each time that it goes away."""
        if not self._is_away:
            _log.warning("gate.patterns_not_loaded", reason=str(error))
        self._is_away = True

    def _note_released(self) -> None:
        held = self._quarantine.find_held(time.monotonic())
        if self._set and (released := self._held - held):
            labels = sorted(self._set.labels[key] for key in released if key in self._set.labels)
            _log.info("gate.patterns_released", patterns=labels)
        self._held = held


def _make(patterns: Sequence[Pattern], budget_ms: float, quarantine: Quarantine) -> _Made:
    """Compiles and tries a set. For a thread: it takes a second and more."""
    usable, skipped = part_usable(patterns)
    tried, faults = try_patterns(usable)
    scanner = tried.timed(budget_ms / 1000, quarantine) if tried and not faults else None
    labels = {pattern.key: pattern.label for pattern in usable}
    return _Made(name_set(usable), labels, skipped, faults, scanner)


def _prepare(patterns: PatternSet) -> None:
    started = time.monotonic()
    _step_back()
    try:
        patterns.scanner.prepare()
    except Exception as error:  # noqa: BLE001 - an engine that cannot be had makes scans slow, not wrong
        _log.warning("gate.patterns_not_prepared", pattern_set=patterns.name, error=type(error).__name__)
    else:
        seconds = round(time.monotonic() - started, 1)
        _log.info("gate.patterns_prepared", pattern_set=patterns.name, seconds=seconds)


def _step_back() -> None:
    """The least priority for this thread: compiling is not to slow what is asked. Only Linux has one for a thread."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
