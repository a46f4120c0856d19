"""The directory of chat channels, as services read it and administrators change it.

A channel is registered by its bot, or by what is first written to it; who it belongs to and whether it is private
counts then. From then on administrators own it. Each change has a row in `audit`. Nothing here is cached, and readers
of other channels' memory join this table in their own statement, so a change counts at the next read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

import sqlalchemy as sa
from lorebus.contracts.channels import split_channel_key
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.administered_settings import AdministeredSettings
from libs.common.database import outages_as_store_unavailable
from libs.common.domain.setting_cascade import Owner
from libs.common.domain.setting_keys import CHANNEL_PRIVATE_BY_DEFAULT
from libs.common.schema import audit, channels, scopes

WRITER = "writer"
"""Who registers a channel that its bot, or something written to it, names first."""
CHANGEABLE = (
    "team_id",
    "is_private",
    "is_active",
    "passive_ingest_enabled",
    "consolidation_enabled",
    "org_flagging_enabled",
)


@dataclass(frozen=True, slots=True)
class Channel:
    tenant: str
    key: str
    channel: str
    org_id: str | None
    team_id: str | None
    is_private: bool
    is_active: bool
    passive_ingest_enabled: bool
    consolidation_enabled: bool
    org_flagging_enabled: bool
    ingest_cursor: str | None
    flagged_at: datetime | None
    created_at: datetime

    @property
    def owner(self) -> Owner:
        """Whose settings hold for it."""
        return Owner(channel=self.key, team=self.team_id, organization=self.org_id)


@dataclass(frozen=True, slots=True)
class NewChannel:
    """What a bot says of a channel. `is_private` None: it does not know."""

    key: str
    team_id: str | None = None
    is_private: bool | None = None


_COLUMNS = [channels.c[name] for name in Channel.__dataclass_fields__]


class ChannelDirectory:
    """Every method raises StoreUnavailable."""

    def __init__(self, engine: AsyncEngine, settings: AdministeredSettings) -> None:
        self._engine = engine
        self._settings = settings

    async def find(self, tenant: str, key: str) -> Channel | None:
        found = await self._find_all(_query(tenant, key))
        return found[0] if found else None

    async def find_all(self, tenant: str) -> list[Channel]:
        return await self._find_all(sa.select(*_COLUMNS).filter_by(tenant=tenant).order_by(channels.c.key))

    async def register(self, tenant: str, new: NewChannel, *, actor: str = WRITER) -> Channel:
        """The channel as it is known; as it is told now, where nobody knew it."""
        known = await self.find(tenant, new.key)
        if known is not None:
            return known
        told = {"team_id": new.team_id, "is_private": await self._is_private(tenant, new)}
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                return await _insert(connection, tenant, new.key, told, actor)

    async def change(self, tenant: str, key: str, changes: Mapping[str, object], *, actor: str) -> Channel:
        """Sets what is named, with an audit row in the same transaction. Makes an unknown channel known first."""
        await self.register(tenant, NewChannel(key), actor=actor)
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                before = await _get(connection, _query(tenant, key).with_for_update())
                after = {name: value for name, value in changes.items() if getattr(before, name) != value}
                if not after:
                    return before
                await connection.execute(sa.update(channels).filter_by(tenant=tenant, key=key).values(after))
                if "team_id" in after:
                    await _move_scope(connection, tenant, key, after["team_id"])
                was = {name: getattr(before, name) for name in after}
                await connection.execute(
                    sa.insert(audit).values(_audit_entry(before, "channel.set", actor, was, after))
                )
        return replace(before, **cast("dict[str, Any]", after))

    async def _is_private(self, tenant: str, new: NewChannel) -> bool:
        if new.is_private is not None:
            return new.is_private
        owner = Owner(team=new.team_id, organization=split_channel_key(new.key)[0])
        return await self._settings.get(CHANNEL_PRIVATE_BY_DEFAULT, tenant, owner)

    async def _find_all(self, query: sa.Select[*tuple[Any, ...]]) -> list[Channel]:
        with outages_as_store_unavailable():
            async with self._engine.connect() as connection:
                return [Channel(**row) for row in (await connection.execute(query)).mappings()]


def _query(tenant: str, key: str) -> sa.Select[*tuple[Any, ...]]:
    return sa.select(*_COLUMNS).filter_by(tenant=tenant, key=key)


async def _get(connection: AsyncConnection, query: sa.Select[*tuple[Any, ...]]) -> Channel:
    return Channel(**(await connection.execute(query)).mappings().one())


async def _insert(
    connection: AsyncConnection, tenant: str, key: str, told: Mapping[str, object], actor: str
) -> Channel:
    """Unless somebody was faster; the row as it stands then."""
    org_id, channel = split_channel_key(key)
    row = {"tenant": tenant, "key": key, "org_id": org_id, "channel": channel, **told}
    new = insert(channels).values(row).on_conflict_do_nothing().returning(channels.c.key)
    is_new = (await connection.execute(new)).one_or_none() is not None
    made = await _get(connection, _query(tenant, key))
    if is_new:
        await connection.execute(sa.insert(audit).values(_audit_entry(made, "channel.register", actor, None, told)))
    return made


async def _move_scope(connection: AsyncConnection, tenant: str, key: str, team_id: object) -> None:
    """Its memory is the new team's, whose settings hold from now on."""
    own = sa.update(scopes).filter_by(tenant=tenant, kind="channel-memory", key=key)
    await connection.execute(own.values(team_id=team_id))


def _audit_entry(
    channel: Channel, action: str, actor: str, before: Mapping[str, object] | None, after: Mapping[str, object]
) -> dict[str, Any]:
    entry = {"tenant": channel.tenant, "actor": actor, "action": action, "entity_kind": "channel"}
    return entry | {"entity_id": channel.key, "before": before or sa.null(), "after": dict(after)}
