"""What is kept of an event beside the memory that it made, and how forgetting finds it.

The message itself lies in a stream, sometimes more than once (a publisher that was not sure said it again); parts of
transcripts, answers of a model and dead letters lie in tables. Tables are cleared at once, in the caller's transaction.
Messages are written down in `bus_erasures`, since a broker takes part in no transaction and may be away; a task deletes
them, and goes on until none is left.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from lorebus.contracts.subjects import RUN_FINISHED
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.common.database import are_among, is_among
from libs.common.domain.memory import event_key, event_of
from libs.common.inbox import Receipt
from libs.common.schema import (
    bus_erasures,
    dead_letters,
    evidence_parts,
    inbox,
    inbox_copies,
    ingest_windows,
    model_answers,
    tombstones,
)
from libs.common.tombstones import FORGOTTEN

EVENTS_AT_ONCE_MAX = 5_000

_PLACE = ("stream", "stream_sequence", "published_at")


@dataclass(frozen=True, slots=True)
class StoppedEvent:
    """An event that was in work when it was forgotten."""

    schema_name: str
    event_id: str
    run_id: str | None
    repository: str | None


async def delete_copies(connection: AsyncConnection, tenant: str, keys: Iterable[str]) -> list[StoppedEvent]:
    """Everything that is kept of these events (`event_key`); their inbox rows stay and end. Returns the open ones."""
    events = list(dict.fromkeys(map(event_of, keys)))
    stopped: list[StoppedEvent] = []
    for start in range(0, len(events), EVENTS_AT_ONCE_MAX):
        stopped += await _delete_copies(connection, tenant, events[start : start + EVENTS_AT_ONCE_MAX])
    return stopped


async def _delete_copies(
    connection: AsyncConnection, tenant: str, events: Sequence[tuple[str, str]]
) -> list[StoppedEvent]:
    keys = [event_key(schema_name, event_id) for schema_name, event_id in events]
    for table in (evidence_parts, model_answers, ingest_windows):
        gone = sa.delete(table).where(table.c.tenant == tenant, is_among(table.c.event_id, keys))
        await connection.execute(gone)
    await connection.execute(sa.delete(dead_letters).where(*_are(dead_letters, tenant, events)))
    for table in (inbox, inbox_copies):
        places = sa.select(*(table.c[name] for name in _PLACE)).where(*_are(table, tenant, events))
        await _request_erasure(connection, places.where(table.c.stream_sequence > 0))
    return await _end_open(connection, tenant, events)


async def erase_message(connection: AsyncConnection, receipt: Receipt) -> None:
    """Has the message that brought this event deleted from its stream, once this transaction has committed."""
    if receipt.stream_sequence > 0:
        row = {name: getattr(receipt, name) for name in _PLACE}
        await connection.execute(insert(bus_erasures).values(row).on_conflict_do_nothing())


async def request_late_erasures(connection: AsyncConnection) -> None:
    """For copies of buried events that turned up later: a message that was on its way when its event was forgotten."""
    copies = inbox_copies.c
    key = sa.case(
        (copies.schema_name == RUN_FINISHED, copies.event_id), else_=copies.schema_name + ":" + copies.event_id
    )
    is_buried = sa.exists().where(
        tombstones.c.tenant == copies.tenant, tombstones.c.kind == "event", tombstones.c.key == key
    )
    late = sa.delete(inbox_copies).where(is_buried).returning(*(copies[name] for name in _PLACE)).cte("late")
    await _request_erasure(connection, sa.select(late))


def _are(
    table: sa.Table, tenant: str, events: Sequence[tuple[str, str]]
) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    return table.c.tenant == tenant, are_among((table.c.schema_name, table.c.event_id), events)


async def _request_erasure(connection: AsyncConnection, places: sa.Select[tuple[object, ...]]) -> None:
    new = insert(bus_erasures).from_select(list(_PLACE), places)
    await connection.execute(new.on_conflict_do_nothing())


async def _end_open(connection: AsyncConnection, tenant: str, events: Sequence[tuple[str, str]]) -> list[StoppedEvent]:
    """Whoever has such an event in hand loses its claim: its message is about to go and would not come again."""
    open_rows = sa.update(inbox).where(*_are(inbox, tenant, events), inbox.c.status == "claimed")
    ended = open_rows.values(status="skipped", reason=FORGOTTEN, lease_until=None, terminal_at=sa.func.now())
    rows = await connection.execute(ended.returning(*(inbox.c[name] for name in StoppedEvent.__dataclass_fields__)))
    return [StoppedEvent(**row) for row in rows.mappings()]
