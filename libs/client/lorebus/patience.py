"""How long something is tried again: with pauses that grow and differ, so that many callers do not return at once."""

import asyncio
from random import SystemRandom

PAUSE_SECONDS_MIN = 0.1
PAUSE_SECONDS_MAX = 2.0

chance = SystemRandom()


class Patience:
    """So many seconds from now on. Needs a running loop."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._now = asyncio.get_running_loop().time
        self._ends = self._now() + seconds
        self._pause_seconds = PAUSE_SECONDS_MIN

    @property
    def left_seconds(self) -> float:
        return max(0.0, self._ends - self._now())

    async def pause(self) -> bool:
        """Waits before another attempt. Is there time left for one?"""
        await asyncio.sleep(min(chance.uniform(0.5, 1.0) * self._pause_seconds, self.left_seconds))
        self._pause_seconds = min(2 * self._pause_seconds, PAUSE_SECONDS_MAX)
        return self.left_seconds > 0
