"""Runs a command's work: its client, its errors, its end."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import typer
from lorebus import Lorebus, LorebusError, MemoryUnavailable
from lorebus.contracts.envelope import DEFAULT_TENANT

from cli.endpoints import find_nats_url
from cli.output import fail

ResultT = TypeVar("ResultT")

CONNECT_SECONDS = 5.0
DONE = 0
FAILED = 1
INTERRUPTED = 130


def run(work: Coroutine[Any, Any, ResultT], *, interrupted: int = INTERRUPTED) -> ResultT:
    """The result of this work; a LorebusError becomes a red line and exit code 1, Ctrl-C this exit code."""
    try:
        return asyncio.run(work)
    except LorebusError as error:
        raise fail(error) from error
    except KeyboardInterrupt:
        raise typer.Exit(interrupted) from None


@dataclass(frozen=True, slots=True)
class Target:
    """Whose memory on which bus, as the options say."""

    nats_url: str | None
    data: Path
    tenant: str = DEFAULT_TENANT

    def client(self) -> Lorebus:
        """Not connected yet."""
        return Lorebus(find_nats_url(self.nats_url, self.data), self.tenant, name="lorebus-cli")

    async def ask(self, question: Callable[[Lorebus], Awaitable[ResultT]]) -> ResultT:
        """The answer to one question, in time whatever is down."""
        async with self.client() as memory:
            return await question(memory)

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Lorebus]:
        """A client that is connected, or an error: a person who waits wants to know."""
        async with self.client() as memory:
            if not await memory.wait_connected(CONNECT_SECONDS):
                fault = memory.connection.last_fault or "no answer"
                raise MemoryUnavailable(
                    f"no bus answers at {memory.connection.address} ({fault}): is `lorebus up` running?"
                )
            yield memory
