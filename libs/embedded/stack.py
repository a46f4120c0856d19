"""Both servers on one data folder: all that `lorebus up` needs below itself."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from libs.embedded.folder import open_folder
from libs.embedded.nats_server import EmbeddedNats
from libs.embedded.postgres import EmbeddedPostgres


class EmbeddedStack:
    """`async with EmbeddedStack(folder) as stack:` then `stack.database_url` and `stack.nats_url`."""

    def __init__(
        self,
        data: Path,
        *,
        nats_port: int = 0,
        postgres_port: int = 0,
        durable: bool = True,
        postgres: bool = True,
        nats: bool = True,
        postgres_binaries: Path | None = None,
        nats_binaries: Path | None = None,
    ) -> None:
        self._data = data
        self._postgres = (
            EmbeddedPostgres(data, port=postgres_port, durable=durable, binaries=postgres_binaries)
            if postgres
            else None
        )
        self._nats = EmbeddedNats(data, port=nats_port, durable=durable, binaries=nats_binaries) if nats else None
        self._exit = AsyncExitStack()
        self.database_url: str | None = None
        self.nats_url: str | None = None

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as undo:
            undo.enter_context(open_folder(self._data).lock())
            await self._start(undo)
            self._exit = undo.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._exit.aclose()

    async def _start(self, undo: AsyncExitStack) -> None:
        for server in (self._postgres, self._nats):
            if server:
                undo.push_async_callback(server.stop)
        # Both are let finish before an error is raised: what is still starting cannot be stopped cleanly.
        database_url, nats_url = await asyncio.gather(
            _start_server(self._postgres), _start_server(self._nats), return_exceptions=True
        )
        if isinstance(database_url, BaseException):
            raise database_url
        if isinstance(nats_url, BaseException):
            raise nats_url
        self.database_url, self.nats_url = database_url, nats_url


async def _start_server(server: EmbeddedPostgres | EmbeddedNats | None) -> str | None:
    return await server.start() if server else None
