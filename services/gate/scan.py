"""One text against the pattern set: what matched, and whether every pattern had its say.

A scan that was not complete is no clean bill: the caller decides, by purpose, what to do with it. Time is the
thread's CPU time, so a busy machine cannot make a good pattern look slow. Nothing here can stop a search that hangs:
both engines are linear, and whoever calls from a thread gives up waiting.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field

from services.gate.engine import Engine, Re2Engine, build_engine, has_fast_engine
from services.gate.patterns import Pattern, Regex, Severity, compile_pattern, load_builtin_patterns
from services.gate.quarantine import Quarantine
from services.gate.structure import find_structural
from services.gate.views import build_views

SCAN_VERSION = 3
"""Raised whenever a text may be read in another way: what earlier versions cleared is then screened again."""

WHOLE_TEXT_BYTES_MAX = 32 * 1024
WINDOW_CHARS = 20_000
WINDOW_OVERLAP_CHARS = 2_000
BUDGET_SECONDS = 0.25
ALLOWANCE_BASE_SECONDS = 0.2
"""For any text: RE2 builds its automata as it reads, which a text of a new kind has taken 60 ms of (measured)."""
_NOTHING_HELD: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A pattern that this scan put away, and for how long."""

    label: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Scan:
    """Labels in the order of the set, then what the text is made of."""

    matched: tuple[str, ...] = ()
    watched: tuple[str, ...] = ()
    complete: bool = True
    quarantined: tuple[Quarantined, ...] = ()


@dataclass(frozen=True, slots=True)
class _Compiled:
    pattern: Pattern
    regex: Regex


@dataclass(frozen=True, slots=True)
class _Lot:
    """Patterns that scan together, with their engine, if there is one by now."""

    entries: tuple[_Compiled, ...]
    engine: Engine | None

    def find_candidates(self, window: bytes) -> Sequence[int] | None:
        return range(len(self.entries)) if self.engine is None else self.engine.find_candidates(window)

    def allowance_seconds(self, window: bytes) -> float:
        per_kib = Re2Engine.seconds_per_kib if self.engine is None else self.engine.seconds_per_kib
        return ALLOWANCE_BASE_SECONDS + per_kib * len(window) / 1024


BuildEngine = Callable[[Sequence[Pattern]], Engine | None]


@dataclass(frozen=True, slots=True)
class _Selection:
    """The patterns that are not held: all of them, and those that tell one line from the next."""

    held: frozenset[str]
    every: _Lot
    of_lines: _Lot

    @classmethod
    def build(cls, held: frozenset[str], entries: Sequence[_Compiled], build_engine: BuildEngine) -> "_Selection":
        kept = tuple(entry for entry in entries if entry.pattern.key not in held)
        of_lines = tuple(entry for entry in kept if entry.pattern.reads_lines)
        lots = [_Lot(lot, build_engine([entry.pattern for entry in lot])) for lot in (kept, of_lines)]
        return cls(held, *lots)


def _build_fast(patterns: Sequence[Pattern]) -> Engine:
    built_in = load_builtin_patterns()
    reads_lines = all(pattern.reads_lines for pattern in patterns)
    return build_engine(patterns, [pattern for pattern in built_in if pattern.reads_lines or not reads_lines])


class Scanner:
    """Holds compiled patterns; any thread may scan at any time.

    It scans with RE2 from the start. `prepare` takes a faster engine if there is one; verdicts stay the same. When
    patterns come into quarantine, an engine without them is built behind the scans.
    """

    def __init__(
        self,
        patterns: Sequence[Pattern],
        *,
        budget_seconds: float = BUDGET_SECONDS,
        quarantine: Quarantine | None = None,
        cpu_clock: Callable[[], float] = time.thread_time,
        builder: Executor | None = None,
    ) -> None:
        self._compiled = tuple(_Compiled(pattern, compile_pattern(pattern)) for pattern in patterns)
        self._keys = frozenset(pattern.key for pattern in patterns)
        self._severities = {pattern.label: pattern.severity for pattern in patterns}
        self._all = self._build(_NOTHING_HELD, Re2Engine)
        self._some: _Selection | None = None
        self._budget_seconds = budget_seconds
        self._quarantine = quarantine or Quarantine()
        self._cpu_clock = cpu_clock
        # Starts its thread with the first work.
        self._builder = builder or ThreadPoolExecutor(max_workers=1, thread_name_prefix="gate-engine")

    def timed(self, budget_seconds: float, quarantine: Quarantine) -> "Scanner":
        """One with the same compiled patterns, which cost a fifth of a second, on the thread's own clock."""
        scanner = copy(self)
        scanner._budget_seconds, scanner._quarantine = budget_seconds, quarantine
        scanner._cpu_clock = time.thread_time
        return scanner

    def prepare(self) -> None:
        """Takes seconds of the calling thread, and lets others run meanwhile. Without a faster engine RE2's stays."""
        if has_fast_engine():
            self._all = self._build(_NOTHING_HELD, _build_fast)

    def scan(self, text: str, now: float) -> Scan:
        """`now` is monotonic seconds; it only decides which patterns sit in quarantine."""
        if not text:
            return Scan()
        found = _Findings()
        written, *readings = build_views(text)
        watch = _Stopwatch(self._cpu_clock)
        if written not in readings:
            self._scan_view(written, now, watch, found, is_written=True)
        for reading in readings:
            # One reading that refuses is enough; the others would only name more patterns.
            if not self._labels(found, "block"):
                self._scan_view(reading, now, watch, found)
        return Scan(
            matched=(*self._labels(found, "block"), *find_structural(text)),
            watched=self._labels(found, "watch"),
            complete=found.complete,
            quarantined=tuple(found.quarantined),
        )

    def _labels(self, found: "_Findings", severity: Severity) -> tuple[str, ...]:
        if not found.matched:
            return ()
        return tuple(label for label, its in self._severities.items() if its == severity and label in found.matched)

    def _scan_view(
        self, view: str, now: float, watch: "_Stopwatch", found: "_Findings", *, is_written: bool = False
    ) -> None:
        for window in split_windows(view):
            selection = self._select(self._quarantine.find_held(now) & self._keys)
            if selection.held:
                found.complete = False
            self._scan_window(selection.of_lines if is_written else selection.every, window, now, watch, found)

    def _scan_window(self, lot: _Lot, window: bytes, now: float, watch: "_Stopwatch", found: "_Findings") -> None:
        budget_seconds = min(self._budget_seconds, lot.allowance_seconds(window))
        if _scan_together(lot, window, budget_seconds, watch, found):
            return
        found.complete = False
        # Every pattern once more by itself, so that only one that is slow by itself is put away.
        for entry in lot.entries:
            found.note(entry, window)
            if watch.lap() > budget_seconds and (seconds := self._quarantine.add(entry.pattern.key, now)):
                found.quarantined.append(Quarantined(entry.pattern.label, seconds))

    def _select(self, held: frozenset[str]) -> _Selection:
        """The selection for what is held now. A new one has no engine at first, which is slow and right."""
        if not held:
            return self._all
        some = self._some
        if some is None or some.held != held:
            self._some = some = self._build(held, lambda _: None)
            self._builder.submit(self._speed_up, some)
        return some

    def _speed_up(self, some: _Selection) -> None:
        fast = self._build(some.held, _build_fast)
        # Unless what is held has changed meanwhile.
        if self._some is some:
            self._some = fast

    def _build(self, held: frozenset[str], build_engine: BuildEngine) -> _Selection:
        return _Selection.build(held, self._compiled, build_engine)


@dataclass(slots=True)
class _Findings:
    """What one scan has gathered over its views and windows."""

    matched: set[str] = field(default_factory=set[str])
    complete: bool = True
    quarantined: list[Quarantined] = field(default_factory=list[Quarantined])

    def note(self, entry: _Compiled, window: bytes) -> None:
        if entry.pattern.label not in self.matched and entry.regex.search(window) is not None:
            self.matched.add(entry.pattern.label)


class _Stopwatch:
    """CPU time since the last look."""

    def __init__(self, cpu_clock: Callable[[], float]) -> None:
        self._cpu_clock = cpu_clock
        self._last = cpu_clock()

    def lap(self) -> float:
        last, self._last = self._last, self._cpu_clock()
        return self._last - last


def _scan_together(lot: _Lot, window: bytes, budget_seconds: float, watch: _Stopwatch, found: _Findings) -> bool:
    """False when the lot overran its budget on this window, or its engine did not read all of it."""
    candidates = lot.find_candidates(window)
    if candidates is None:
        return False
    spent_seconds = watch.lap()
    for number in candidates:
        if spent_seconds > budget_seconds:
            return False
        found.note(lot.entries[number], window)
        spent_seconds += watch.lap()
    return spent_seconds <= budget_seconds


def split_windows(view: str) -> Iterator[bytes]:
    """The view whole, or in overlapping windows when it is long; UTF-8, so that it is encoded once for all patterns."""
    encoded = view.encode()
    if len(encoded) <= WHOLE_TEXT_BYTES_MAX:
        yield encoded
        return
    last_start = max(len(view) - WINDOW_OVERLAP_CHARS, 1)
    for start in range(0, last_start, WINDOW_CHARS - WINDOW_OVERLAP_CHARS):
        yield view[start : start + WINDOW_CHARS].encode()
