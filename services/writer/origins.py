"""Origins that are refused too often: for a while nothing of theirs is taken.

An origin is a repository, for its runs, or a repository and a writer, for that writer's notes. Somebody who tries
wordings until one passes the gate is stopped by counting, whatever the words are. Each refusal is a row of `audit` in
the transaction that refuses, so that all copies of the writer count together and a restart forgets nothing; in
quarantine nothing is screened and nothing counted, which bounds the rows as well.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from lorebus.contracts.facts.writer import OriginQuarantined
from lorebus.contracts.subjects import RUN_FINISHED
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.common.schema import audit, origin_quarantines
from services.writer.rules import Source

REFUSALS_MAX = 5
"""True lessons are refused once in hundreds: five within minutes are no accident."""
WINDOW = timedelta(minutes=10)
QUARANTINE = timedelta(hours=1)
"""Long enough to make trying pointless, short enough that a repository loses few lessons to somebody's attack."""

_REFUSED = "origin.refuse"


async def find_quarantine_end(connection: AsyncConnection, source: Source) -> datetime | None:
    """Until when nothing of the source's origin is taken; None: it is free."""
    query = sa.select(origin_quarantines.c.until).filter_by(tenant=source.tenant, origin=source.origin)
    return (await connection.execute(query.where(origin_quarantines.c.until > sa.func.now()))).scalar_one_or_none()


async def count_refusal(
    connection: AsyncConnection, source: Source, patterns: Sequence[str]
) -> OriginQuarantined | None:
    """Notes that the gate found a pattern; the fact is there when this refusal was one too many."""
    # One after the other, else two refusals at once would not see each other.
    key = sa.func.hashtextextended(f"{source.tenant} {source.origin}", 0)
    await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(key)))
    await connection.execute(sa.insert(audit).values(_entry(source, patterns)))
    refusals = await _count_recent(connection, source)
    until = await _quarantine(connection, source) if refusals >= REFUSALS_MAX else None
    if until is None:
        return None
    return OriginQuarantined(
        tenant=source.tenant,
        repository=source.repository,
        written_by=None if source.schema_name == RUN_FINISHED else source.agent_key,
        refusals=refusals,
        until=until,
    )


def _entry(source: Source, patterns: Sequence[str]) -> dict[str, object]:
    return {
        "tenant": source.tenant,
        "actor": "writer",
        "action": _REFUSED,
        "entity_kind": "origin",
        "entity_id": source.origin,
        "after": {"event_id": source.event_id, "patterns": list(patterns)},
    }


async def _count_recent(connection: AsyncConnection, source: Source) -> int:
    query = sa.select(sa.func.count()).select_from(audit)
    of_origin = {"tenant": source.tenant, "entity_kind": "origin", "entity_id": source.origin, "action": _REFUSED}
    recent = query.filter_by(**of_origin).where(audit.c.at > sa.func.now() - WINDOW)
    return (await connection.execute(recent)).scalar_one()


async def _quarantine(connection: AsyncConnection, source: Source) -> datetime | None:
    """Its end; None where it runs already."""
    until = sa.func.now() + QUARANTINE
    new = insert(origin_quarantines).values(tenant=source.tenant, origin=source.origin, until=until)
    again = new.on_conflict_do_update(
        index_elements=list(origin_quarantines.primary_key),
        set_={"until": until},
        where=origin_quarantines.c.until <= sa.func.now(),
    )
    return (await connection.execute(again.returning(origin_quarantines.c.until))).scalar_one_or_none()
