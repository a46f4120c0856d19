"""What channels remember, as flagging and digests read it. Tenant and scope are in every statement."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa
from pgvector import HalfVector as HalfVectorValue
from sqlalchemy.ext.asyncio import AsyncEngine

from libs.common.channels import Channel
from libs.common.database import outages_as_store_unavailable
from libs.common.schema import HalfVector, channels, gate_findings, memory_items, memory_vectors, scopes


@dataclass(frozen=True, slots=True)
class Note:
    """An active memory of a channel, which it names by its key."""

    id: UUID
    channel: str
    summary: str
    tier: int


@dataclass(frozen=True, slots=True)
class Search:
    model_id: int
    vector: npt.NDArray[np.float32]
    cosine_min: float
    limit: int


_ITEMS = memory_items.c
_IS_ACTIVE = sa.and_(
    _ITEMS.superseded_at.is_(None),
    _ITEMS.consolidated_at.is_(None),
    _ITEMS.held_at.is_(None),
    ~sa.exists().where(gate_findings.c.item_id == _ITEMS.id),
)
_NOTES = (
    sa.select(_ITEMS.id, scopes.c.key.label("channel"), _ITEMS.summary, _ITEMS.origin_tier.label("tier"))
    .join(scopes, scopes.c.id == _ITEMS.scope_id)
    .where(scopes.c.kind == "channel-memory", _IS_ACTIVE)
)


class ChannelNotes:
    """Every method raises StoreUnavailable."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def find_newest(self, tenant: str, key: str, limit: int) -> list[Note]:
        own = _NOTES.where(_ITEMS.tenant == tenant, scopes.c.tenant == tenant, scopes.c.key == key)
        return await self._find(own.order_by(_ITEMS.created_at.desc(), _ITEMS.id).limit(limit))

    async def find_elsewhere(self, channel: Channel, search: Search) -> list[Note]:
        """Of the organization's other channels that may be read, the nearest first."""
        vectors = memory_vectors.c
        embedding = sa.bindparam(None, HalfVectorValue(search.vector), type_=HalfVector())
        distance = vectors.embedding.op("<#>")(embedding)
        near = (
            self._readable(channel)
            .join(memory_vectors, vectors.item_id == _ITEMS.id)
            .where(vectors.model_id == search.model_id, vectors.active, distance <= -search.cosine_min)
        )
        return await self._find(near.order_by(distance, _ITEMS.id).limit(search.limit))

    async def find_readable(self, channel: Channel, ids: Sequence[UUID]) -> list[Note]:
        """Those of these that the channel may read now."""
        return await self._find(self._readable(channel).where(_ITEMS.id.in_(ids)).order_by(_ITEMS.id))

    async def begin_look(self, channel: Channel, cooldown: timedelta) -> bool:
        """Whether it is time for one; then the cooldown begins."""
        columns = channels.c
        due = sa.or_(columns.flagged_at.is_(None), columns.flagged_at <= sa.func.now() - cooldown)
        begun = sa.update(channels).filter_by(tenant=channel.tenant, key=channel.key).where(due)
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                return (await connection.execute(begun.values(flagged_at=sa.func.now()))).rowcount == 1

    def _readable(self, channel: Channel) -> sa.Select[*tuple[Any, ...]]:
        """Notes of other active, public channels of the same organization; of none where there is no organization."""
        columns = channels.c
        own_tenant = sa.and_(_ITEMS.tenant == channel.tenant, scopes.c.tenant == channel.tenant)
        joined = _NOTES.join(channels, sa.and_(columns.tenant == scopes.c.tenant, columns.key == scopes.c.key))
        return joined.where(
            own_tenant,
            columns.org_id == channel.org_id,
            columns.key != channel.key,
            columns.is_active,
            ~columns.is_private,
        )

    async def _find(self, query: sa.Select[*tuple[Any, ...]]) -> list[Note]:
        with outages_as_store_unavailable():
            async with self._engine.connect() as connection:
                return [Note(**row) for row in (await connection.execute(query)).mappings()]
