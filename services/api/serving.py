"""The HTTP server inside a process that handles signals itself."""

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from libs.common.errors import SetupIncomplete

STOP_SECONDS = 2
"""For requests in work at a stop; less than a service's stop may take."""
WAITING_MAX = 512
"""Connections that the system holds for us."""


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class Serving:
    """Listens from `open` on; requests are answered while `run` runs; `stop` finishes those in work."""

    def __init__(self, app: ASGIApp, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._socket: socket.socket | None = None
        self._server = _Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=STOP_SECONDS,
            )
        )
        self._ended = asyncio.Event()

    def open(self) -> None:
        """Raises SetupIncomplete when the port is taken."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        # asyncio sends at once only on sockets that name their protocol; otherwise answers wait 40 ms for an ack.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((self._host, self._port))
        except OSError as error:
            listening.close()
            raise SetupIncomplete(
                f"the API cannot listen at {self._host}:{self._port} ({error.strerror}): set LOREBUS_API_HOST and"
                " LOREBUS_API_PORT"
            ) from error
        listening.listen(WAITING_MAX)
        self._socket = listening

    async def run(self) -> None:
        try:
            await self._server.serve([self._socket] if self._socket else None)
        finally:
            self._ended.set()

    async def stop(self) -> None:
        self._server.should_exit = True
        await self._ended.wait()
