"""Patterns that proved too slow and are left out for a while, shared by all scans of one process."""

import threading

QUARANTINE_SECONDS = 600.0


class Quarantine:
    """Remembers keys of patterns until a time. Time is the caller's: monotonic seconds, passed in.

    It outlives a reload of the pattern set, so that a reload does not free a slow pattern.
    """

    def __init__(self, duration_seconds: float = QUARANTINE_SECONDS) -> None:
        self._duration_seconds = duration_seconds
        self._until_by_key: dict[str, float] = {}
        self._lock = threading.Lock()

    def add(self, key: str, now: float) -> bool:
        """Starts the term; False when it had started already, so that two scans report one quarantine."""
        with self._lock:
            if self._until_by_key.get(key, now) > now:
                return False
            self._until_by_key[key] = now + self._duration_seconds
            return True

    def find_held(self, now: float) -> frozenset[str]:
        with self._lock:
            self._until_by_key = {key: until for key, until in self._until_by_key.items() if until > now}
            return frozenset(self._until_by_key)
