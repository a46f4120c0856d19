"""One text against the pattern set: what matched, and whether every pattern had its say.

A scan that was not complete is no clean bill: the caller decides, by purpose, what to do with it. Time is the
thread's CPU time, so a busy machine cannot make a good pattern look slow.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from services.gate.canonical import build_views
from services.gate.patterns import Pattern, Regex, Severity, compile_any, compile_pattern
from services.gate.quarantine import Quarantine

SCAN_VERSION = 1
"""Raised whenever a text may be read in another way: what earlier versions cleared is then screened again."""

WHOLE_TEXT_BYTES_MAX = 32 * 1024
WINDOW_CHARS = 20_000
WINDOW_OVERLAP_CHARS = 2_000
BUDGET_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Scan:
    """Labels in the order of the set; `quarantined` names only those this scan put away."""

    matched: tuple[str, ...] = ()
    watched: tuple[str, ...] = ()
    complete: bool = True
    quarantined: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Compiled:
    label: str
    key: str
    severity: Severity
    regex: Regex


class Scanner:
    """Holds compiled patterns; only the quarantine changes, and it locks itself: any thread may scan at any time."""

    def __init__(
        self,
        patterns: Sequence[Pattern],
        *,
        budget_seconds: float = BUDGET_SECONDS,
        quarantine: Quarantine | None = None,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._compiled = tuple(
            _Compiled(pattern.label, pattern.key, pattern.severity, compile_pattern(pattern)) for pattern in patterns
        )
        self._any = compile_any(patterns)
        self._budget_seconds = budget_seconds
        self._quarantine = quarantine or Quarantine()
        self._cpu_clock = cpu_clock

    def scan(self, text: str, now: float) -> Scan:
        """`now` is monotonic seconds; it only decides which patterns sit in quarantine."""
        if not text:
            return Scan()
        found = _Findings()
        for view in build_views(text):
            for window in split_windows(view):
                self._scan_window(window, now, found)
        matched = tuple(e.label for e in self._compiled if e.label in found.matched and e.severity == "block")
        watched = tuple(e.label for e in self._compiled if e.label in found.matched and e.severity == "watch")
        return Scan(matched, watched, found.complete, tuple(found.quarantined))

    def _scan_window(self, window: bytes, now: float, found: "_Findings") -> None:
        held = self._quarantine.find_held(now)
        active = [entry for entry in self._compiled if entry.key not in held]
        if len(active) < len(self._compiled):
            found.complete = False
        if not self._scan_together(active, window, found):
            found.complete = False
            self._scan_alone(active, window, now, found)

    def _scan_together(self, active: Sequence[_Compiled], window: bytes, found: "_Findings") -> bool:
        """False when the whole set overran its budget on this window."""
        deadline = self._cpu_clock() + self._budget_seconds
        # One pass over the whole set tells that nothing matches, which is the answer for nearly every text.
        if len(active) == len(self._compiled) and self._any.search(window) is None:
            return self._cpu_clock() <= deadline
        for entry in active:
            found.note(entry, window)
            if self._cpu_clock() > deadline:
                return False
        return True

    def _scan_alone(self, active: Sequence[_Compiled], window: bytes, now: float, found: "_Findings") -> None:
        """Every pattern once more by itself, so that only one that is slow by itself is put away."""
        for entry in active:
            started = self._cpu_clock()
            found.note(entry, window)
            overran = self._cpu_clock() - started > self._budget_seconds
            if overran and self._quarantine.add(entry.key, now):
                found.quarantined.append(entry.label)


@dataclass(slots=True)
class _Findings:
    """What one scan has gathered over its views and windows."""

    matched: set[str] = field(default_factory=set[str])
    complete: bool = True
    quarantined: list[str] = field(default_factory=list[str])

    def note(self, entry: _Compiled, window: bytes) -> None:
        if entry.regex.search(window) is not None:
            self.matched.add(entry.label)


def split_windows(view: str) -> Iterator[bytes]:
    """The view whole, or in overlapping windows when it is long; UTF-8, so that it is encoded once for all patterns."""
    encoded = view.encode()
    if len(encoded) <= WHOLE_TEXT_BYTES_MAX:
        yield encoded
        return
    last_start = max(len(view) - WINDOW_OVERLAP_CHARS, 1)
    for start in range(0, last_start, WINDOW_CHARS - WINDOW_OVERLAP_CHARS):
        yield view[start : start + WINDOW_CHARS].encode()
