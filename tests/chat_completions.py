"""A provider of language models, faked: a local HTTP server that speaks the chat-completions protocol, by script."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

TOKENS_IN, TOKENS_OUT = 1_000, 100


@dataclass(frozen=True)
class Reply:
    """What the server does with one request: a completion by default."""

    text: str | None = ""
    status: int = 200
    body: bytes | None = None
    """In place of the protocol's body."""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    is_silent: bool = False
    """Takes the request and never answers."""
    is_cut: bool = False
    """Closes the connection in the middle of its answer."""


@dataclass
class Provider:
    url: str
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The bodies received, in order."""

    def messages(self, number: int = -1) -> list[dict[str, str]]:
        return self.requests[number]["messages"]


@asynccontextmanager
async def chat_completions(*script: Reply) -> AsyncIterator[Provider]:
    """Answers with one reply of the script after the other; the last one stays."""
    left = list(script)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            provider.requests.append(await _read_request(reader))
            await _reply(left.pop(0) if len(left) > 1 else left[0], reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        provider = Provider(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        yield provider


async def _read_request(reader: asyncio.StreamReader) -> dict[str, Any]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    return json.loads(await reader.readexactly(int(head.split("content-length:")[1].split()[0])))


async def _reply(reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if reply.is_silent:
        await reader.read()  # until the client has had enough
        return
    body = _completion(reply.text) if reply.body is None else reply.body
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"}
    lines = [f"HTTP/1.1 {reply.status} X", *(f"{name}: {text}" for name, text in (headers | reply.headers).items())]
    writer.write("\r\n".join([*lines, "", ""]).encode() + (body[: len(body) // 2] if reply.is_cut else body))
    await writer.drain()


def _completion(text: str | None) -> bytes:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT, "total_tokens": TOKENS_IN + TOKENS_OUT}
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]
    answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage}
    return json.dumps(answer).encode()
