"""What was forgotten, by id, so that work in flight cannot bring it back.

Whoever stores a memory asks `find_buried` under the lock of its scope, right before it stores; what is buried ends as
skipped with the reason `forgotten`. The asking holds a lock of the tenant, shared, until the transaction ends; whoever
forgets takes that lock for itself behind the scopes' (`lock_tombstones`) and then looks for its targets. So a write
either ended before and is found, or comes later and finds the tombstone. Locks are taken in this order: scopes by
ascending number, tombstones, rows by ascending id.

An event or an item stays buried for ever. A person or a session is buried up to a moment: what they say later is heard.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.common.schema import tombstones

FORGOTTEN = "forgotten"
"""Why work whose subject is buried is skipped."""

_LOCK = 0x4C43

Kind = Literal["event", "item", "person", "session"]
Graves = Mapping[Kind, Iterable[str]]


@dataclass(frozen=True, slots=True)
class Work:
    """What is about to be stored: what it is made from, and whose words it holds."""

    tenant: str
    events: Sequence[str] = ()
    """As `source_event_id` names them (`event_key`)."""
    items: Sequence[UUID] = ()
    persons: Sequence[str] = ()
    sessions: Sequence[str] = ()
    told_at: datetime | None = None
    """When the words came, by the broker's clock; None: they may be of any time."""

    def graves(self) -> dict[Kind, list[str]]:
        return {
            "event": list(self.events),
            "item": list(map(str, self.items)),
            "person": list(self.persons),
            "session": list(self.sessions),
        }


async def find_buried(connection: AsyncConnection, work: Work) -> list[tuple[str, str]]:
    """What of it was forgotten, as (kind, key); empty where it may be stored until this transaction ends."""
    await connection.execute(sa.select(sa.func.pg_advisory_xact_lock_shared(_LOCK, sa.func.hashtext(work.tenant))))
    columns = tombstones.c
    wanted = [(kind, key) for kind, keys in work.graves().items() for key in keys]
    is_wanted = sa.tuple_(columns.kind, columns.key).in_(wanted)
    query = sa.select(columns.kind, columns.key).where(columns.tenant == work.tenant, is_wanted)
    if work.told_at is not None:
        query = query.where(sa.or_(columns.kind.in_(("event", "item")), columns.buried_at >= work.told_at))
    return [(row.kind, row.key) for row in await connection.execute(query)]


async def lock_tombstones(connection: AsyncConnection, tenant: str) -> None:
    """Until the transaction ends nothing of the tenant's is stored. Behind the locks of the scopes."""
    await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK, sa.func.hashtext(tenant))))


async def bury(connection: AsyncConnection, tenant: str, graves: Graves, buried_at: datetime | None = None) -> None:
    """`buried_at`: up to when a person or a session is; None: up to now."""
    at = sa.func.now() if buried_at is None else buried_at
    rows = [
        {"tenant": tenant, "kind": kind, "key": key, "buried_at": at}
        for kind, keys in graves.items()
        for key in dict.fromkeys(keys)
    ]
    for start in range(0, len(rows), _ROWS_MAX):
        new = insert(tombstones).values(rows[start : start + _ROWS_MAX])
        later = sa.func.greatest(tombstones.c.buried_at, new.excluded.buried_at)
        await connection.execute(
            new.on_conflict_do_update(index_elements=list(tombstones.primary_key), set_={"buried_at": later})
        )


_ROWS_MAX = 1_000
