"""What being active means in the tables: an item's vector is scanned, its words find it, its scope counts it.

Called under the scope lock, so that the counts are right whoever inserts, supersedes, merges or forgets.
"""

from collections.abc import Sequence
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.common.database import is_among
from libs.common.schema import memory_items, memory_terms, memory_vectors, scope_terms, scopes


async def activate(connection: AsyncConnection, scope_id: int, ids: Sequence[UUID]) -> None:
    """Makes inactive items of the scope recallable."""
    await _flip(connection, scope_id, ids, is_active=True)
    words = sa.select(sa.literal(scope_id), sa.func.unnest(memory_items.c.terms), memory_items.c.id)
    source = words.where(is_among(memory_items.c.id, ids))
    await connection.execute(insert(memory_terms).from_select(["scope_id", "term", "item_id"], source))
    counted = (
        sa.select(memory_terms.c.scope_id, memory_terms.c.term, sa.func.count())
        .where(is_among(memory_terms.c.item_id, ids))
        .group_by(memory_terms.c.scope_id, memory_terms.c.term)
    )
    new = insert(scope_terms).from_select(["scope_id", "term", "documents"], counted)
    more = {"documents": scope_terms.c.documents + new.excluded.documents}
    await connection.execute(
        new.on_conflict_do_update(index_elements=[scope_terms.c.scope_id, scope_terms.c.term], set_=more)
    )


async def deactivate(connection: AsyncConnection, scope_id: int, ids: Sequence[UUID]) -> None:
    """Takes active items of the scope out of recall; their rows and vectors stay."""
    await _flip(connection, scope_id, ids, is_active=False)
    theirs = sa.delete(memory_terms).where(is_among(memory_terms.c.item_id, ids))
    gone = theirs.returning(memory_terms.c.term).cte("gone")
    counted = sa.select(gone.c.term, sa.func.count().label("documents")).group_by(gone.c.term).subquery()
    fewer = {"documents": scope_terms.c.documents - counted.c.documents}
    await connection.execute(
        sa.update(scope_terms)
        .where(scope_terms.c.scope_id == scope_id, scope_terms.c.term == counted.c.term)
        .values(fewer)
    )


async def delete_unused_words(connection: AsyncConnection, scope_id: int, words: Sequence[str]) -> None:
    """Of these, what no active memory says any more: the counts alone would tell what a deleted one said."""
    unused = sa.delete(scope_terms).where(scope_terms.c.scope_id == scope_id, scope_terms.c.documents == 0)
    await connection.execute(unused.where(is_among(scope_terms.c.term, words)))


async def _flip(connection: AsyncConnection, scope_id: int, ids: Sequence[UUID], *, is_active: bool) -> None:
    await connection.execute(
        sa.update(memory_vectors).where(is_among(memory_vectors.c.item_id, ids)).values(active=is_active)
    )
    change = len(ids) if is_active else -len(ids)
    await connection.execute(
        sa.update(scopes).where(scopes.c.id == scope_id).values(items_active=scopes.c.items_active + change)
    )
