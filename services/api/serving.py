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


def listen(host: str, port: int) -> socket.socket:
    """Connections wait from now on. Raises SetupIncomplete when the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once only on sockets that name their protocol; otherwise answers wait 40 ms for an ack.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise SetupIncomplete(
            f"the API cannot listen at {host}:{port} ({error.strerror}): set LOREBUS_API_HOST and LOREBUS_API_PORT"
        ) from error
    listening.listen(WAITING_MAX)
    return listening


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class Serving:
    """Requests are answered while `run` runs; `stop` finishes those in work."""

    def __init__(self, app: ASGIApp, listening: socket.socket) -> None:
        self._socket = listening
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

    async def run(self) -> None:
        try:
            await self._server.serve([self._socket])
        finally:
            self._ended.set()

    async def stop(self) -> None:
        self._server.should_exit = True
        await self._ended.wait()
