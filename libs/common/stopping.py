"""Stopping what may not want to stop: every step gets its time, and then the next one is taken."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import structlog

_log = structlog.get_logger("run")

CANCEL_SECONDS = 0.1
CANCEL_TRIES = 50


async def finish(step: Callable[[], Awaitable[object]], seconds: float, **about: str) -> None:
    """Runs one step of a stop. One that hangs or fails is logged and left, so that it cannot keep the process alive."""

    async def run() -> None:
        await step()

    task = asyncio.create_task(run())
    await asyncio.wait({task}, timeout=seconds)
    if not task.done():
        _log.warning("run.stop_abandoned", seconds=seconds, **about)
        await cancel([task])
    elif not task.cancelled() and (error := task.exception()):
        _log.warning("run.stop_failed", error=type(error).__name__, **about)


async def cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancels until each has ended: once is not enough, since Python 3.11's `wait_for`, which nats-py waits with,
    can swallow a cancellation."""
    pending = set(tasks)
    for _ in range(CANCEL_TRIES):
        for task in pending:
            task.cancel()
        if not pending:
            return
        done, pending = await asyncio.wait(pending, timeout=CANCEL_SECONDS)
        for task in done:
            if not task.cancelled():
                task.exception()  # seen, so that nothing complains of it later
