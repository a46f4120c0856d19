"""Work that goes on after its caller has gone on: kept from being forgotten, and never a failure of the caller's."""

import asyncio
import logging
from collections.abc import Coroutine

from lorebus.errors import LorebusError

log = logging.getLogger("lorebus")


class Background:
    def __init__(self) -> None:
        # The loop alone holds tasks weakly: one that nobody refers to may vanish half done.
        self._tasks: set[asyncio.Task[object]] = set()

    @property
    def is_idle(self) -> bool:
        return not self._tasks

    async def run(self, work: Coroutine[object, object, object], name: str, wait_seconds: float) -> None:
        """Starts it and waits for it, but no longer than this. What goes wrong is logged under this name."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._finish)
        await asyncio.wait({task}, timeout=wait_seconds)

    async def close(self, timeout_seconds: float) -> None:
        """Waits a moment for what is in work, then gives it up."""
        if not self._tasks:
            return
        _, late = await asyncio.wait(set(self._tasks), timeout=timeout_seconds)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=timeout_seconds)

    def _finish(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            log.warning("%s: given up, the client was closed", task.get_name())
        elif error := task.exception():
            # Only our own errors are known to quote no text.
            said = str(error) if isinstance(error, LorebusError) else type(error).__name__
            log.warning("%s: %s", task.get_name(), said)
