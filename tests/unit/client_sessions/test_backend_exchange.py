"""One request over HTTP/1.1: every way an answer may come, and every way in which it may not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address

import pytest
from lorebus.sessions.address import parse_address
from lorebus.sessions.errors import BackendUnavailable, ProviderSettingsInvalid
from lorebus.sessions.exchange import BODY_BYTES_MAX, HttpAnswer, HttpRequest, exchange_http


@asynccontextmanager
async def answering(*chunks: bytes, ends: bool = True) -> AsyncIterator[HttpRequest]:
    """A server that says these bytes, whatever it is asked; without an end it goes on holding the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for chunk in chunks:
            writer.write(chunk)
            await writer.drain()
        if not ends:
            await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield HttpRequest(parse_address(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"), "GET", "/x")


async def ask(*chunks: bytes, ends: bool = True) -> HttpAnswer:
    async with answering(*chunks, ends=ends) as request, asyncio.timeout(10):
        return await exchange_http(request)


HEAD = b"HTTP/1.1 200 OK\r\n"


async def test_an_answer_of_known_length_is_whole_before_the_connection_ends() -> None:
    answer = await ask(HEAD + b"content-LENGTH: 4\r\n\r\nab", b"cd", ends=False)
    assert answer == HttpAnswer(200, b"abcd")


async def test_an_answer_in_chunks_is_put_together() -> None:
    answer = await ask(HEAD + b"Transfer-Encoding: chunked\r\n\r\n2;a=b\r\nab\r\n", b"A\r\n0123456789\r\n0\r\n\r\n")
    assert answer.body == b"ab0123456789"


async def test_an_answer_of_unknown_length_lasts_to_the_end() -> None:
    assert (await ask(HEAD + b"\r\nab", b"cd")).body == b"abcd"


async def test_a_status_is_an_answer_and_an_early_hint_is_none() -> None:
    hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    assert await ask(hint + b"HTTP/1.1 503 Down\r\nContent-Length: 0\r\n\r\n") == HttpAnswer(503, b"")


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 two\r\n\r\n",
        HEAD + b"Content-Length: 9\r\n\r\nab",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: many\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n-2\r\nab\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
        HEAD + b"X: " + b"x" * 70_000 + b"\r\n\r\n",
    ],
    ids=["nothing", "ssh", "no status", "cut", "negative", "no number", "no size", "minus", "cut chunk", "long head"],
)
async def test_what_is_no_answer_is_unavailable(said: bytes) -> None:
    with pytest.raises(BackendUnavailable, match="cannot be read"):
        await ask(said)


@pytest.mark.parametrize(
    "head",
    [f"Content-Length: {BODY_BYTES_MAX + 1}\r\n\r\n", f"Transfer-Encoding: chunked\r\n\r\n{BODY_BYTES_MAX + 1:x}\r\n"],
    ids=["length", "chunk"],
)
async def test_an_answer_too_large_is_not_taken(head: str) -> None:
    with pytest.raises(BackendUnavailable):
        await ask(HEAD + head.encode(), ends=False)


async def test_an_answer_that_grows_without_end_is_not_taken() -> None:
    with pytest.raises(BackendUnavailable):
        await ask(HEAD + b"\r\n", *[b"x" * 1024 * 1024] * 10, ends=False)


async def test_a_port_where_nobody_listens_is_unavailable(free_port: int) -> None:
    request = HttpRequest(parse_address(f"http://127.0.0.1:{free_port}"), "GET", "/x")
    with pytest.raises(BackendUnavailable, match="cannot be reached"):
        await exchange_http(request)


async def test_a_caller_that_gives_up_ends_the_connection() -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        with suppress(ConnectionError):
            await reader.read()
        writer.close()
        ended.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, asyncio.timeout(10):
        address = parse_address(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        call = asyncio.create_task(exchange_http(HttpRequest(address, "GET", "/x")))
        await asked.wait()
        call.cancel()
        await asyncio.wait({call})
        await ended.wait()
    assert call.cancelled()


async def test_a_name_that_points_to_a_refused_address_is_sent_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No network of a test has such an address: here the loopback is declared one after the name was taken."""
    received: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.read())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, asyncio.timeout(10):
        address = parse_address(f"http://localhost:{server.sockets[0].getsockname()[1]}")
        monkeypatch.setattr("lorebus.sessions.address.METADATA_ADDRESSES", {ip_address("127.0.0.1")})
        with pytest.raises(ProviderSettingsInvalid, match="points to"):
            await exchange_http(HttpRequest(address, "POST", "/x", {"Authorization": "Bearer k"}, b"{}"))
    assert received in ([], [b""])
