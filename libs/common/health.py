"""Liveness and readiness over HTTP, for containers, orchestrators and `lorebus doctor`."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

Check = Callable[[], Awaitable[dict[str, str]]]
Link = Callable[[], bool]

DISCONNECTED_SECONDS_MAX = 60.0
"""So long a service may be off the bus before it asks to be restarted."""


class Health:
    """What is known of the services in this process."""

    def __init__(self, started: float) -> None:
        self._started = started
        self._checks: dict[str, Check] = {}
        self._links: dict[str, Link] = {}
        self._off_since: dict[str, float] = {}
        self.start_seconds = 0.0
        self._is_serving = False

    def add(self, service: str, check: Check, is_connected: Link) -> None:
        self._checks[service] = check
        self._links[service] = is_connected

    def is_alive(self, now: float) -> bool:
        """False when a service has been off the bus for a minute; `now` is monotonic."""
        for service, is_connected in self._links.items():
            if is_connected():
                self._off_since.pop(service, None)
            else:
                self._off_since.setdefault(service, now)
        return all(now - since < DISCONNECTED_SECONDS_MAX for since in self._off_since.values())

    def mark_ready(self) -> None:
        self.start_seconds = time.monotonic() - self._started
        self._is_serving = True

    def mark_stopping(self) -> None:
        self._is_serving = False

    async def report(self) -> tuple[bool, dict[str, object]]:
        """Whether all services work, and each part's state."""
        states = await asyncio.gather(*(check() for check in self._checks.values()))
        services = dict(zip(self._checks, states, strict=True))
        is_ready = self._is_serving and all(state == "ok" for parts in states for state in parts.values())
        return is_ready, {
            "status": "ok" if is_ready else "unavailable",
            "services": services,
            "start_seconds": round(self.start_seconds, 3),
        }


class _Server(uvicorn.Server):
    """Uvicorn inside a process that handles signals itself."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def serve_health(health: Health, host: str, port: int) -> AsyncGenerator[None]:
    """Answers /healthz (the process lives) and /readyz (its services work) while the block runs."""

    async def live(_request: Request) -> JSONResponse:
        is_alive = health.is_alive(time.monotonic())
        return JSONResponse({"status": "ok" if is_alive else "disconnected"}, status_code=200 if is_alive else 503)

    async def ready(_request: Request) -> JSONResponse:
        is_ready, report = await health.report()
        return JSONResponse(report, status_code=200 if is_ready else 503)

    app = Starlette(routes=[Route("/healthz", live), Route("/readyz", ready)])
    server = _Server(uvicorn.Config(app, host=host, port=port, log_config=None, access_log=False, lifespan="off"))
    serving = asyncio.create_task(server.serve())
    try:
        yield
    finally:
        server.should_exit = True
        await serving
