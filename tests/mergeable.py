"""Memories that say the same, and what a test needs to have them merged."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import sqlalchemy as sa
from conftest import Installation
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.common.schema import inbox, memory_items, scopes

UPLOAD = (
    "The upload test fails on CI because libmagic is missing from the image; install libmagic1 before pytest.",
    "The upload test fails on CI since libmagic is missing in the image: install libmagic1 before running pytest.",
    "On CI the upload test fails as libmagic is missing from the image; install libmagic1 before pytest runs in it.",
)
DOCS = (
    "The docs build breaks when sphinx 8 is installed; pin sphinx below 8 in requirements-docs.txt.",
    "The docs build breaks with sphinx 8 installed: pin sphinx below 8 in requirements-docs.txt first.",
    "When sphinx 8 is installed the docs build breaks; pin sphinx below 8 in the file requirements-docs.txt.",
)
OTHER = "Migrations must be squashed before a release branch is cut."


async def save(installation: Installation, repository: str, summaries: Sequence[str], **fields: Any) -> list[UUID]:
    """Stores them as notes that supersede nothing; the ids in their order."""
    note = {"repository": repository, "writer": "shellStep", "supersede": False, **fields}
    replies = [await installation.memory.save_note(**note, summary=text, deadline_seconds=10) for text in summaries]
    assert [reply.error for reply in replies] == [None] * len(summaries)
    return [UUID(str(reply.id)) for reply in replies]


async def consolidate(installation: Installation, repository: str, **fields: Any) -> dict[str, Any]:
    """Asks for it, and waits for what it came to."""
    published = await installation.memory.request_consolidation(repository=repository, **fields)
    return await installation.facts("lessons_consolidated", seconds=20, event_id=published.event_id)


def counts(fact: dict[str, Any]) -> tuple[int, ...]:
    """Clusters found and consolidated, lessons consolidated and created."""
    names = ("clusters_found", "clusters_consolidated", "lessons_consolidated", "lessons_created")
    return tuple(fact[name] for name in names)


async def items_of(installation: Installation, repository: str) -> dict[UUID, dict[str, Any]]:
    query = sa.select(memory_items).join(scopes, scopes.c.id == memory_items.c.scope_id)
    return {row["id"]: row for row in await installation.rows(query.where(scopes.c.key == repository))}


async def merged_of(installation: Installation, repository: str) -> list[dict[str, Any]]:
    rows = (await items_of(installation, repository)).values()
    return [row for row in rows if row["agent_key"] == "lessonConsolidator"]


async def scope_of(installation: Installation, repository: str) -> int:
    [row] = await installation.rows(sa.select(scopes.c.id).where(scopes.c.key == repository))
    return row["id"]


async def until_claimed(installation: Installation, event_id: str) -> None:
    await installation.until(sa.select(inbox.c.status).filter_by(event_id=event_id, status="claimed"))


async def until_waiting(connection: AsyncConnection, scope_id: int, waiters: int = 1, seconds: float = 20) -> None:
    """Until so many transactions wait for the lock of the scope, which this connection holds."""
    query = sa.text(
        "select count(*) from pg_locks where locktype = 'advisory' and not granted and objid = :scope"
        " and database = (select oid from pg_database where datname = current_database())"
    )
    async with asyncio.timeout(seconds):
        while (await connection.execute(query, {"scope": scope_id})).scalar_one() < waiters:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def new_id() -> str:
    return str(uuid4())
