"""Proves that what was forgotten is found nowhere: reads it before it goes, in memory alone, and looks for it after.

A finding is not always a copy: another memory may say the same, which nobody asked to forget. It is named all the same.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from lorebus import Lorebus
from lorebus.contracts.channels import split_channel_key
from lorebus.contracts.memory import DeleteMemory
from nats.errors import Error as NatsError
from nats.js.errors import Error as JetStreamError
from nats.js.errors import NotFoundError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from cli.searching import Needles, find_in_files, find_in_streams, find_in_tables
from libs.common.bus.streams import STREAMS
from libs.common.database import are_among, is_among
from libs.common.domain.memory import event_of
from libs.common.forgetting import preview_forgetting
from libs.common.schema import bus_erasures, inbox, inbox_copies, memory_items, memory_sources, scopes
from services.consolidator.forgetting.targets import find_events, find_targets

ERASED_SECONDS_MAX = 60.0
"""How long the bus may take to be cleared behind a delete."""
ASK_SECONDS = 5.0
SCOPE_OPTIONS = {"swe-lessons": "repository", "agent-memory": "project"}


@dataclass(frozen=True, slots=True)
class Text:
    """A memory that is about to go."""

    id: UUID
    scope_kind: str
    scope_key: str
    summary: str
    rationale: str


def place_of(text: Text) -> dict[str, Any]:
    """Where recall is asked for it."""
    if text.scope_kind == "channel-memory":
        org_id, channel = split_channel_key(text.scope_key)
        return {"channel": channel, "org_id": org_id}
    return {SCOPE_OPTIONS[text.scope_kind]: text.scope_key}


@dataclass(frozen=True, slots=True)
class Remembered:
    """`places`: where streams hold its events, by stream and sequence."""

    texts: Sequence[Text] = ()
    places: Sequence[tuple[str, int]] = ()

    def needles(self) -> Needles:
        return Needles.of(text for item in self.texts for text in (item.summary, item.rationale))


@dataclass(frozen=True, slots=True)
class Probe:
    """Where was looked, and what was found there. `fault`: why it could not be looked."""

    where: str
    found: Mapping[str, int]
    fault: str = ""


async def remember(engine: AsyncEngine, tenant: str, command: DeleteMemory) -> Remembered:
    """What the command would delete if it came now."""
    async with engine.connect() as connection:
        targets = await find_targets(connection, tenant, command)
        plan = await preview_forgetting(connection, tenant, targets)
        columns = (scopes.c.kind, scopes.c.key, memory_items.c.summary, memory_items.c.rationale)
        query = sa.select(memory_items.c.id, *columns, memory_items.c.source_event_id)
        query = query.join(scopes, scopes.c.id == memory_items.c.scope_id)
        query = query.where(is_among(memory_items.c.id, plan.deleted))
        rows = (await connection.execute(query)).all()
        events = [event_of(key) for key in {*find_events(command), *(row.source_event_id for row in rows)}]
        return Remembered([Text(*row[:5]) for row in rows], await _find_places(connection, tenant, events))


async def _find_places(
    connection: AsyncConnection, tenant: str, events: Sequence[tuple[str, str]]
) -> list[tuple[str, int]]:
    places: list[tuple[str, int]] = []
    for table in (inbox, inbox_copies):
        is_theirs = are_among((table.c.schema_name, table.c.event_id), events)
        query = sa.select(table.c.stream, table.c.stream_sequence).where(table.c.tenant == tenant, is_theirs)
        held = await connection.execute(query.where(table.c.stream_sequence > 0))
        places += [(row.stream, row.stream_sequence) for row in held]
    return places


class Proving:
    """Looks after a delete. `folder`: of a `lorebus up` on this machine, whose files are then searched as well."""

    def __init__(self, engine: AsyncEngine, memory: Lorebus, remembered: Remembered, folder: Path | None) -> None:
        self._engine = engine
        self._memory = memory
        self._remembered = remembered
        self._needles = remembered.needles()
        self._folder = folder

    async def prove(self) -> list[Probe]:
        probes = [await self._probe_erasures(), await self._probe_lineage(), await self._probe_tables()]
        probes += [await self._probe_recall(), await self._probe_explain(), *await self._probe_bus()]
        return [*probes, *await self._probe_files()]

    async def _probe_erasures(self) -> Probe:
        """Waits until the bus is cleared: it is told behind the delete."""
        mine = are_among((bus_erasures.c.stream, bus_erasures.c.stream_sequence), self._remembered.places)
        query = sa.select(bus_erasures.c.stream, bus_erasures.c.stream_sequence).where(mine)
        rows: Sequence[Any] = ()
        for _ in range(int(ERASED_SECONDS_MAX / 0.2)):
            async with self._engine.connect() as connection:
                rows = (await connection.execute(query)).all()
            if not rows:
                break
            await asyncio.sleep(0.2)
        return Probe("messages still to be erased", {f"{stream} {sequence}": 1 for stream, sequence in rows})

    async def _probe_lineage(self) -> Probe:
        ids = [text.id for text in self._remembered.texts]
        merged = sa.or_(is_among(memory_sources.c.merged_id, ids), is_among(memory_sources.c.source_id, ids))
        queries = {
            "memories": sa.select(sa.func.count()).where(is_among(memory_items.c.id, ids)),
            "merged from them": sa.select(sa.func.count()).select_from(memory_sources).where(merged),
        }
        async with self._engine.connect() as connection:
            counts = {name: int(await connection.scalar(query) or 0) for name, query in queries.items()}
        return _probe("memories and what was merged from them", counts)

    async def _probe_tables(self) -> Probe:
        return _probe("every text column of every table", await find_in_tables(self._engine, self._needles))

    async def _probe_recall(self) -> Probe:
        """By the old text, every item let through, and by search where the memory was a lesson."""
        found: dict[str, int] = {}
        for text in self._remembered.texts:
            place = place_of(text)
            options: dict[str, Any] = {"similarity_min": 0, "limit": 10, "deadline_seconds": ASK_SECONDS}
            reply = await self._memory.recall(text.summary, **place, **options)
            if reply.degraded:
                return Probe("recall and search by the old text", found, f"recall is degraded: {reply.reason}")
            ids = [item.id for item in reply.items]
            if text.scope_kind == "swe-lessons":
                listed = await self._memory.search(
                    text.summary, repository=text.scope_key, limit=10, deadline_seconds=ASK_SECONDS
                )
                ids += [lesson.lesson_id for lesson in listed.lessons]
            found |= {str(text.id): ids.count(str(text.id))}
        return _probe("recall and search by the old text", found)

    async def _probe_explain(self) -> Probe:
        ids = [str(text.id) for text in self._remembered.texts]
        replies = [await self._memory.explain(id_, deadline_seconds=ASK_SECONDS) for id_ in ids]
        faults = [f"explain is degraded: {reply.reason}" for reply in replies if reply.degraded]
        found = {id_: int(reply.lesson is not None) for id_, reply in zip(ids, replies, strict=True)}
        return _probe("explain", found, "".join(faults[:1]))

    async def _probe_bus(self) -> list[Probe]:
        try:
            return [await self._probe_places(), await self._probe_messages()]
        except (NatsError, JetStreamError, OSError, TimeoutError) as error:
            return [Probe("messages of the streams", {}, type(error).__name__)]

    async def _probe_places(self) -> Probe:
        jetstream, held = self._memory.connection.client.jetstream(), dict[str, int]()
        for stream, sequence in self._remembered.places:
            try:
                await jetstream.get_msg(stream, sequence)
            except NotFoundError:
                continue
            held[f"{stream} {sequence}"] = 1
        return Probe("messages by their numbers", held)

    async def _probe_messages(self) -> Probe:
        names = [stream.name or "" for stream in STREAMS]
        client = self._memory.connection.client
        return _probe("every message of every stream", await find_in_streams(client, names, self._needles))

    async def _probe_files(self) -> list[Probe]:
        if self._folder is None:
            return []
        return [await self._probe_folder(name, self._folder / name) for name in ("nats/store", "logs")]

    async def _probe_folder(self, name: str, folder: Path) -> Probe:
        where = f"bytes of the files in {name}"
        try:
            return _probe(where, await find_in_files(folder, self._needles))
        except OSError as error:
            return Probe(where, {}, f"{type(error).__name__}: ask as the user who runs `lorebus up`")


def _probe(where: str, counts: Mapping[str, int], fault: str = "") -> Probe:
    return Probe(where, {name: count for name, count in counts.items() if count}, fault)
