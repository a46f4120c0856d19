"""One HTTP request and its answer, by the standard library alone.

A connection a call: calls are few and far between, and a connection that nobody keeps cannot be found broken. All
waiting is the loop's, so a caller that gives up leaves no thread behind. Redirects are not followed and proxies not
used: the backend is a service of one's own.
"""

import asyncio
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPException, parse_headers
from typing import Protocol

from lorebus.sessions.address import Address, is_refused_host
from lorebus.sessions.errors import BackendUnavailable, ProviderSettingsInvalid

HEAD_BYTES_MAX = 64 * 1024
BODY_BYTES_MAX = 8 * 1024 * 1024
STATUS_SUCCESS = 200


@dataclass(frozen=True, slots=True)
class HttpRequest:
    address: Address
    method: str
    target: str
    """The path and the query, percent-encoded."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    body: bytes


class Exchange(Protocol):
    """Sends a request and gives the answer, whatever its status. Raises BackendUnavailable.

    Raises ProviderSettingsInvalid where the address's name points to one that is refused.
    """

    async def __call__(self, request: HttpRequest) -> HttpAnswer: ...


async def exchange_http(request: HttpRequest) -> HttpAnswer:
    """HTTP/1.1 with an answer of at most BODY_BYTES_MAX. The caller bounds its time."""
    address = request.address
    try:
        reader, writer = await asyncio.open_connection(
            address.host, address.port, ssl=True if address.is_secure else None, limit=HEAD_BYTES_MAX
        )
    except OSError as error:
        raise BackendUnavailable(f"the memory backend cannot be reached ({type(error).__name__})") from error
    try:
        _check_peer(writer)
        writer.write(_render_request(request))
        await writer.drain()
        return await _read_answer(reader)
    except (OSError, EOFError, ValueError, LookupError, HTTPException, asyncio.LimitOverrunError) as error:
        raise BackendUnavailable(f"the memory backend's answer cannot be read ({type(error).__name__})") from error
    finally:
        # Not close: it would wait for a peer that hangs to take what was written.
        writer.transport.abort()


def _check_peer(writer: asyncio.StreamWriter) -> None:
    peer = writer.get_extra_info("peername")
    if peer and is_refused_host(peer[0]):
        raise ProviderSettingsInvalid("baseUrl: its name points to a link-local or metadata address")


def _render_request(request: HttpRequest) -> bytes:
    body = request.body or b""
    headers = {
        "Host": request.address.authority,
        "Connection": "close",
        **({"Content-Length": str(len(body))} if request.body is not None else {}),
        **request.headers,
    }
    lines = [f"{request.method} {request.address.prefix}{request.target} HTTP/1.1"]
    lines += (f"{name}: {value}" for name, value in headers.items())
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


async def _read_answer(reader: asyncio.StreamReader) -> HttpAnswer:
    status = 0
    headers = Message()
    # What comes before the answer proper, such as 103 Early Hints, has no body.
    while status < STATUS_SUCCESS:
        head = io.BytesIO(await reader.readuntil(b"\r\n\r\n"))
        status = int(head.readline().split()[1])
        headers = parse_headers(head)
    return HttpAnswer(status, await _read_body(reader, headers))


async def _read_body(reader: asyncio.StreamReader, headers: Message) -> bytes:
    if "chunked" in headers.get("Transfer-Encoding", "").lower():
        return await _read_chunks(reader)
    length = headers.get("Content-Length")
    if length is not None:
        return await reader.readexactly(_bound(int(length)))
    body = bytearray()
    while chunk := await reader.read(HEAD_BYTES_MAX):
        body += chunk
        _bound(len(body))
    return bytes(body)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        _bound(len(body) + _bound(size))
        body += (await reader.readexactly(size + len(b"\r\n")))[:size]
    return bytes(body)


def _bound(size: int) -> int:
    if not 0 <= size <= BODY_BYTES_MAX:
        raise ValueError("the answer has no size that is taken")
    return size
