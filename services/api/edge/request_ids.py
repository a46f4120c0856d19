"""An id for each request, in its answer and in every log line about it."""

import re
import time
from uuid import uuid4

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "x-request-id"
_GIVEN = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")

_log = structlog.get_logger("api")


class RequestIds:
    """Takes a sound id from the caller, else makes one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        request_id = given if _GIVEN.match(given) else str(uuid4())
        statuses: list[int] = []

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        started = time.perf_counter()
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, send_with_id)
            finally:
                seconds = round(time.perf_counter() - started, 4)
                _log.debug("api.answered", method=scope["method"], status=statuses[-1:] or None, seconds=seconds)
