"""Looks for texts where they may have been kept: in every table, in every message of the bus, in files.

Slow and thorough: it is for proving that something is nowhere.
"""

import asyncio
import json
import mmap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from nats.aio.client import Client
from nats.js.errors import NotFoundError
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

CHARS_MIN = 8
"""Shorter texts are found anywhere."""


@dataclass(frozen=True, slots=True)
class Needles:
    """Texts to look for, as themselves and as JSON writes them."""

    texts: Sequence[str]

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Needles":
        return cls([text for text in dict.fromkeys(map(str.strip, texts)) if len(text) >= CHARS_MIN])

    @property
    def escaped(self) -> list[str]:
        """As Postgres and our services write JSON."""
        return [json.dumps(text, ensure_ascii=False)[1:-1] for text in self.texts]

    @property
    def encoded(self) -> list[bytes]:
        """Every way in which a byte stream may hold them."""
        ascii_only = [json.dumps(text)[1:-1] for text in self.texts]
        return [text.encode() for text in dict.fromkeys([*self.texts, *self.escaped, *ascii_only])]


async def find_in_tables(engine: AsyncEngine, needles: Needles) -> dict[str, int]:
    """In how many rows each column of the database holds one of them."""
    found: dict[str, int] = {}
    async with engine.connect() as connection:
        for table, column, kind in await _find_columns(connection):
            if needles.texts and (count := await _count(connection, table, column, _is_in(column, kind, needles))):
                found[f"{table}.{column}"] = count
    return found


async def _find_columns(connection: AsyncConnection) -> Sequence[Any]:
    query = """
        select table_name, column_name, udt_name from information_schema.columns join information_schema.tables
        using (table_schema, table_name) where table_type = 'BASE TABLE'
        and table_schema not in ('pg_catalog', 'information_schema')
        and udt_name in ('text', 'varchar', '_text', 'json', 'jsonb', 'bytea') order by 1, 2
    """
    return (await connection.execute(sa.text(query))).all()


def _is_in(name: str, kind: str, needles: Needles) -> sa.ColumnElement[bool]:
    column: sa.ColumnClause[Any] = sa.column(name)
    if kind == "bytea":
        return _holds(sa.func.encode(column, "hex"), [needle.hex() for needle in needles.encoded])
    if kind in ("json", "jsonb"):
        return _holds(sa.cast(column, sa.Text), needles.escaped)
    return _holds(sa.func.array_to_string(column, "\n") if kind == "_text" else column, needles.texts)


def _holds(text: sa.ColumnElement[Any], wanted: Sequence[str]) -> sa.ColumnElement[bool]:
    needle = sa.func.unnest(sa.literal(list(wanted), ARRAY(sa.Text))).column_valued("needle")
    return sa.exists(sa.select(sa.literal(1)).where(sa.func.strpos(text, needle) > 0))


async def _count(connection: AsyncConnection, table: str, column: str, is_in: sa.ColumnElement[bool]) -> int:
    rows = sa.table(table, sa.column(column))
    return int(await connection.scalar(sa.select(sa.func.count()).select_from(rows).where(is_in)) or 0)


async def find_in_streams(client: Client, streams: Iterable[str], needles: Needles) -> dict[str, int]:
    """In how many messages each stream holds one of them."""
    found: dict[str, int] = {}
    for stream in streams:
        if count := await _count_messages(client, stream, needles.encoded):
            found[stream] = count
    return found


async def _count_messages(client: Client, stream: str, wanted: Sequence[bytes]) -> int:
    jetstream, sequence, count = client.jetstream(), 1, 0
    while True:
        try:
            message = await jetstream.get_msg(stream, sequence, subject=">", next=True, direct=True)
        except NotFoundError:
            return count
        body = message.data or b""
        count += any(needle in body for needle in wanted)
        sequence = (message.seq or sequence) + 1


async def find_in_files(folder: Path, needles: Needles) -> dict[str, int]:
    """In which files below the folder their bytes lie. Raises OSError for one that cannot be read."""
    return await asyncio.to_thread(_search_files, folder, needles.encoded)


def _search_files(folder: Path, wanted: Sequence[bytes]) -> dict[str, int]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size]
    hits = {str(path.relative_to(folder)): _count_needles(path, wanted) for path in files}
    return {name: count for name, count in hits.items() if count}


def _count_needles(path: Path, wanted: Sequence[bytes]) -> int:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return sum(content.find(needle) >= 0 for needle in wanted)
