"""A provider of embedding models, faked: a local HTTP server that speaks the embeddings protocol and keeps count.

Its vectors are those of the hashing embedder, so that near texts are near. `openai/…` reaches it through its
`variables`.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from libs.common.embedding.hashing import HashingEmbedder
from libs.common.embedding.models import background_texts

MODEL = "openai/test-embedding"


@dataclass
class EmbeddingProvider:
    url: str
    texts: list[str] = field(default_factory=list[str])
    """Those that were embedded, in order, without the background: what a provider would bill for rows."""
    refused: str = ""
    """A text with this in it is answered with 400."""
    is_down: bool = False
    held_from: int | None = None
    """From so many texts on nothing is answered."""
    held: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when an answer is held back."""
    release: asyncio.Event = field(default_factory=asyncio.Event)
    requests: int = 0

    @property
    def variables(self) -> dict[str, str]:
        return {"OPENAI_API_KEY": "test", "OPENAI_API_BASE": self.url}

    def hold_from(self, texts: int) -> None:
        self.held_from = texts
        self.held.clear()
        self.release.clear()

    def let_go(self) -> None:
        self.held_from = None
        self.release.set()

    async def answer(self, asked: list[str]) -> tuple[int, dict[str, object]]:
        self.requests += 1
        if self.is_down:
            return 503, {"error": {"message": "down", "type": "server_error"}}
        if self.refused and any(self.refused in text for text in asked):
            return 400, {"error": {"message": "cannot", "type": "invalid_request_error"}}
        rows = [text for text in asked if text not in BACKGROUND]
        if rows and self.held_from is not None and len(self.texts) + len(rows) > self.held_from:
            self.held.set()
            await self.release.wait()
        self.texts += rows
        vectors = await HashingEmbedder().embed(asked)
        data = [{"object": "embedding", "index": n, "embedding": row.tolist()} for n, row in enumerate(vectors)]
        return 200, {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}


BACKGROUND = frozenset(background_texts())


@asynccontextmanager
async def embedding_provider() -> AsyncIterator[EmbeddingProvider]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.split("content-length:")[1].split()[0])
            status, answer = await provider.answer(json.loads(await reader.readexactly(length))["input"])
            body = json.dumps(answer).encode()
            fields = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close"
            writer.write(f"HTTP/1.1 {status} X\r\n{fields}\r\n\r\n".encode() + body)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        provider = EmbeddingProvider(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        yield provider
        provider.let_go()
