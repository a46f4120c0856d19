"""What asyncpg says while Postgres goes down counts as an outage: waited out, never an error of the statement."""

import asyncio
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from libs.common.database import outages_as_store_unavailable
from libs.common.errors import StoreUnavailable


def message(kind: bytes, body: bytes) -> bytes:
    """A message of Postgres's wire protocol."""
    return kind + struct.pack("!i", len(body) + 4) + body


CRASH = b"SFATAL\0VFATAL\0C57P02\0Mterminating connection because of crash of another server process\0\0"
VERSION = b"server_version\x0016.4\0"
READY = message(b"R", struct.pack("!i", 0)) + message(b"S", VERSION) + message(b"Z", b"I")


async def greet_and_crash(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A server that says its last words to a client that asks nothing, and has not closed the socket yet."""
    await reader.read(1024)
    writer.write(READY + message(b"E", CRASH))
    await reader.read()
    writer.close()


@asynccontextmanager
async def dying_server() -> AsyncGenerator[int]:
    server = await asyncio.start_server(greet_and_crash, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_a_question_between_the_last_words_of_postgres_and_its_end_meets_an_outage() -> None:
    async with dying_server() as port:
        connection = await asyncpg.connect(host="127.0.0.1", port=port, user="a", ssl=False, timeout=10)
        try:
            with pytest.raises(StoreUnavailable), outages_as_store_unavailable():
                await connection.fetch("select 1", timeout=10)
        finally:
            connection.terminate()


async def test_a_fault_of_our_own_use_of_asyncpg_is_no_outage() -> None:
    with pytest.raises(asyncpg.InternalClientError), outages_as_store_unavailable():
        raise asyncpg.InternalClientError("no codec for type 17")
