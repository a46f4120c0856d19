"""How many requests a caller may make: a bucket each, filled steadily, emptied by requests."""

from collections import OrderedDict
from dataclasses import dataclass

CALLERS_MAX = 10_000
BURST_SECONDS = 30.0


@dataclass(slots=True)
class _Bucket:
    left: float
    filled_at: float


class Rates:
    """Forgets who has not asked for longest; somebody forgotten begins with a full bucket."""

    def __init__(self, per_minute: int) -> None:
        self._per_second = per_minute / 60
        self._size = max(1.0, self._per_second * BURST_SECONDS)
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def wait_seconds(self, caller: str, now: float) -> float:
        """0 where the request may go on, which it is counted for; else how long to wait. `now` is monotonic."""
        bucket = self._buckets.setdefault(caller, _Bucket(self._size, now))
        self._buckets.move_to_end(caller)
        if len(self._buckets) > CALLERS_MAX:
            self._buckets.popitem(last=False)
        bucket.left = min(self._size, bucket.left + (now - bucket.filled_at) * self._per_second)
        bucket.filled_at = now
        if bucket.left < 1:
            return (1 - bucket.left) / self._per_second
        bucket.left -= 1
        return 0.0
