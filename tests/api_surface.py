"""The HTTP service beside the services of the session, and callers of both its surfaces."""

import asyncio
import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import jwt
import pytest
from conftest import Installation, run_services

from libs.common.settings import CommonSettings
from services.api.app import PROGRAM as API
from services.consolidator.app import PROGRAM as CONSOLIDATOR

SECRET = "the secret of the drop-in surface"
JWT_SECRET = "a key of more than thirty-two characters"


def token(user: str, **claims: Any) -> str:
    payload = {"sub": user, "exp": time.time() + 60, **claims}
    return jwt.encode(payload, JWT_SECRET, algorithm="HS256")


class Api:
    """Both surfaces of a running service."""

    def __init__(self, installation: Installation, port: int) -> None:
        self.installation = installation
        self.url = f"http://127.0.0.1:{port}"
        self.http = httpx.AsyncClient(base_url=self.url, timeout=30)

    async def call(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        json = {} if body is None else {"json": body}
        return await self.http.request(method, path, **json, **options)

    async def drop_in(self, path: str, body: Any = None, *, method: str = "POST", **options: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {SECRET}", "content-type": "application/json"}
        return await self.call(method, f"/agentmemory{path}", body, headers=headers, **options)

    async def rest(
        self, user: str, method: str, path: str, body: Any = None, *, claims: Any = None, **options: Any
    ) -> httpx.Response:
        headers = {"authorization": f"Bearer {token(user, **(claims or {}))}"}
        return await self.call(method, f"/api/agent-memory{path}", body, headers=headers, **options)


def find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def running_api(settings: CommonSettings, port: int) -> AsyncGenerator[Api]:
    """Without credentials unless the environment names some."""
    named = settings.model_copy(update={"api_port": port})
    async with run_services(named, CONSOLIDATOR, API) as installation:
        api = Api(installation, port)
        async with api.http:
            yield api


class Door:
    """A way to the database that can be closed: who is inside is thrown out, and nobody gets in."""

    def __init__(self, database_url: str) -> None:
        self._target = urlsplit(database_url)
        self._port = 0
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def open(self) -> str:
        """The address of the database through the door, the same each time."""
        self._server = await asyncio.start_server(self._pass_through, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self._target._replace(netloc=f"{self._target.username}@127.0.0.1:{self._port}").geturl()

    def close(self) -> None:
        assert self._server
        self._server.close()
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    async def _pass_through(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner = await asyncio.open_connection(self._target.hostname, self._target.port)
        self._writers += [writer, inner[1]]
        await asyncio.gather(_carry(reader, inner[1]), _carry(inner[0], writer))


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@pytest.fixture(scope="module")
async def api(installation: Installation, servers: CommonSettings) -> AsyncIterator[Api]:
    """With the credentials of both surfaces, and more requests than a caller may have otherwise."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LOREBUS_API_SECRET", SECRET)
        environment.setenv("LOREBUS_API_JWT_SECRET", JWT_SECRET)
        environment.setenv("LOREBUS_API_REQUESTS_PER_MINUTE", "1000000")
        async with running_api(servers, find_port()) as running:
            yield running


@pytest.fixture
def project() -> str:
    """A project that no other test uses."""
    return f"site-{uuid4().hex[:12]}"


FIXTURES = (api, project)
