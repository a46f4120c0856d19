"""Patterns that proved too slow and are left out for a while, shared by all scans of one process."""

import threading
from dataclasses import dataclass

FIRST_TERM_SECONDS = 30.0
QUARANTINE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class _Term:
    until: float
    length_seconds: float


class Quarantine:
    """Remembers keys of patterns until a time. Time is the caller's: monotonic seconds, passed in.

    The first term is short, since a slow moment is more often the machine's than the pattern's; each new offence
    doubles it, up to `duration_seconds`, and as long without one forgets what was. It outlives a reload of the pattern
    set, so that a reload does not free a slow pattern.
    """

    def __init__(self, duration_seconds: float = QUARANTINE_SECONDS) -> None:
        self._duration_seconds = duration_seconds
        self._terms: dict[str, _Term] = {}
        self._lock = threading.Lock()

    def add(self, key: str, now: float) -> float | None:
        """Starts a term and says its seconds; None when one is running, so that two scans report one quarantine."""
        with self._lock:
            last = self._terms.get(key)
            if last is not None and last.until > now:
                return None
            length_seconds = min(last.length_seconds * 2 if last else FIRST_TERM_SECONDS, self._duration_seconds)
            self._terms[key] = _Term(now + length_seconds, length_seconds)
            return length_seconds

    def find_held(self, now: float) -> frozenset[str]:
        if not self._terms:  # nearly always, and asked for each text
            return frozenset()
        with self._lock:
            remembered_from = now - self._duration_seconds
            self._terms = {key: term for key, term in self._terms.items() if term.until > remembered_from}
            return frozenset(key for key, term in self._terms.items() if term.until > now)
