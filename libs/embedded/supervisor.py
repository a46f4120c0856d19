"""Keeps one server running: starts it, starts it again when it dies, stops it."""

import asyncio
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import structlog

from libs.embedded.errors import ServerNotStarted
from libs.embedded.process import POLL_SECONDS, end_child

# Recovery after a crash replays what the disk holds; a server that is busy with it is left alone this long.
START_SECONDS_MAX = 120.0
DELAY_SECONDS_MIN = 0.1
DELAY_SECONDS_MAX = 2.0
STEADY_SECONDS = 10.0
LOG_TAIL_BYTES = 1_000

logger = structlog.get_logger()


class Supervisor:
    """One server. `launch` makes the process, `is_ready` says whether that pid serves yet."""

    def __init__(
        self,
        name: str,
        log: Path,
        launch: Callable[[], Awaitable[Process]],
        is_ready: Callable[[int], Awaitable[bool]],
    ) -> None:
        self._name = name
        self._log = log
        self._launch = launch
        self._is_ready = is_ready
        self._child: Process | None = None
        self._watch: asyncio.Task[None] | None = None

    async def start(self) -> None:
        try:
            child = await self._start_child()
        except BaseException:
            await self.stop()
            raise
        self._watch = asyncio.create_task(self._keep_running(child), name=f"embedded-{self._name}")

    async def stop(self) -> None:
        if self._watch:
            self._watch.cancel()
            await asyncio.wait([self._watch])
        await self._end_child()

    async def _end_child(self) -> None:
        if self._child:
            await end_child(self._child)

    async def _keep_running(self, child: Process) -> None:
        clock = asyncio.get_running_loop()
        delay = DELAY_SECONDS_MIN
        while True:
            started = clock.time()
            code = await child.wait()
            if clock.time() - started > STEADY_SECONDS:
                delay = DELAY_SECONDS_MIN
            logger.warning("embedded.server_died", server=self._name, code=code, delay_seconds=delay)
            await asyncio.sleep(delay)
            delay = min(2 * delay, DELAY_SECONDS_MAX)
            child = await self._restart_child(child)

    async def _restart_child(self, dead: Process) -> Process:
        try:
            child = await self._start_child()
        except (ServerNotStarted, OSError, psutil.Error) as failure:
            logger.warning("embedded.restart_failed", server=self._name, reason=str(failure))
            await self._end_child()
            return dead
        logger.info("embedded.server_restarted", server=self._name, pid=child.pid)
        return child

    async def _start_child(self) -> Process:
        printed_before = self._log.stat().st_size if self._log.exists() else 0
        child = self._child = await self._launch()
        clock = asyncio.get_running_loop()
        deadline = clock.time() + START_SECONDS_MAX
        while not await self._is_ready(child.pid):
            if child.returncode is not None or clock.time() > deadline:
                await self._end_child()
                raise ServerNotStarted(
                    f"{self._name} did not start (exit code {child.returncode}): "
                    f"{self._read_log(printed_before)} [{self._log}]"
                )
            await asyncio.sleep(POLL_SECONDS)
        return child

    def _read_log(self, start: int) -> str:
        printed = self._log.read_bytes()
        return printed[max(start, len(printed) - LOG_TAIL_BYTES) :].decode(errors="replace").strip()
