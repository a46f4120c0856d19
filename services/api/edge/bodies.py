"""Bodies are read whole before a route sees them, so that a long or a slow one costs a bounded amount."""

import asyncio

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.api.surfaces import render_refusal

READ_SECONDS_MAX = 30.0
THROWN_AWAY_MAX = 16
"""Times the limit; then the connection ends."""


class BodyTooLarge(Exception):
    """More bytes than are taken."""


class Bodies:
    def __init__(self, app: ASGIApp, bytes_max: int) -> None:
        self._app = app
        self._bytes_max = bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(READ_SECONDS_MAX):
                body = await self._read(receive)
        except BodyTooLarge:
            await self._refuse(scope, receive, send, 413, f"a body may have at most {self._bytes_max} bytes")
        except TimeoutError:
            await self._refuse(scope, receive, send, 408, "the body did not come in time")
        except ClientDisconnect:
            return
        else:
            await self._app(scope, _replay(body, receive), send)

    async def _read(self, receive: Receive) -> bytes:
        """Past its limit a body is thrown away as it comes: a caller who is cut off reads no answer."""
        body, bytes_read, is_whole = bytearray(), 0, False
        while not is_whole:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            part: bytes = message.get("body", b"")
            bytes_read += len(part)
            is_whole = not message.get("more_body", False)
            if bytes_read <= self._bytes_max:
                body += part
            elif bytes_read > THROWN_AWAY_MAX * self._bytes_max:
                raise BodyTooLarge
        if bytes_read > self._bytes_max:
            raise BodyTooLarge
        return bytes(body)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, status: int, message: str) -> None:
        answer = JSONResponse(render_refusal(scope["path"], status, message), status)
        # What is left of the body is not read.
        answer.headers["connection"] = "close"
        await answer(scope, receive, send)


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body as one message, then whatever comes: a disconnect."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again
