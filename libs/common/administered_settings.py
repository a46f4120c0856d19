"""What administrators set, as services read it and `lorebus settings` changes it.

All rows of a tenant are read at once and kept for a while, so a look is nearly always one in a dictionary. A change is
seen by every copy of a service when its cache has run out. What was read last stays in force while the table cannot be
read; only where nothing was ever read does a look fail, and its caller decides what that means.
"""

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
import structlog
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.database import outages_as_store_unavailable
from libs.common.domain.setting_cascade import (
    NOBODY,
    PLATFORM,
    Address,
    Owner,
    Place,
    Stored,
    read_stored,
    resolve_value,
)
from libs.common.domain.setting_keys import Key, ValueT, check_setting, get_key
from libs.common.errors import StoreUnavailable
from libs.common.schema import audit, settings

_log = structlog.get_logger("settings")

CACHE_SECONDS = 30.0
RETRY_SECONDS = 1.0
"""How long a failed look is not repeated."""
TENANTS_REMEMBERED_MAX = 1_000


@dataclass(frozen=True, slots=True)
class _Look:
    """What is known of a tenant; `stored` is None while no look has succeeded."""

    stored: Stored | None
    holds_until: float


_Value = dict[str, object]
"""`{"value": …}`, since a JSON null or false must not read as nothing."""


@dataclass(frozen=True, slots=True)
class _Change:
    tenant: str
    address: Address
    after: _Value | None
    actor: str


class AdministeredSettings:
    """The settings of one installation. `timeout_seconds` bounds one look."""

    def __init__(
        self,
        engine: AsyncEngine,
        cache_seconds: float = CACHE_SECONDS,
        *,
        timeout_seconds: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._cache_seconds = cache_seconds
        self._timeout_seconds = timeout_seconds
        self._clock = clock
        self._known: dict[str, _Look] = {}
        self._looking: dict[str, asyncio.Task[_Look]] = {}

    async def get(self, key: Key[ValueT], tenant: str, owner: Owner = NOBODY) -> ValueT:
        """The value in force. Raises StoreUnavailable where the settings could not be read yet."""
        return resolve_value(key, await self.get_stored(tenant), owner)

    async def get_stored(self, tenant: str) -> Stored:
        """All that the tenant has set, as the cache knows it. Raises StoreUnavailable."""
        known = self._known.get(tenant)
        if known is None or self._clock() >= known.holds_until:
            # A caller whose time is up leaves the look to those who wait with it.
            known = await asyncio.shield(self._look_once(tenant))
        if known.stored is None:
            raise StoreUnavailable("the settings could not be read")
        return known.stored

    def _look_once(self, tenant: str) -> "asyncio.Task[_Look]":
        if tenant not in self._looking:
            self._looking[tenant] = asyncio.create_task(self._look(tenant))
            self._looking[tenant].add_done_callback(lambda _: self._looking.pop(tenant))
        return self._looking[tenant]

    async def _look(self, tenant: str) -> _Look:
        last = self._known.get(tenant)
        known = last.stored if last else None
        try:
            async with asyncio.timeout(self._timeout_seconds):
                stored = await find_stored(self._engine, tenant)
        except (StoreUnavailable, TimeoutError) as error:
            _log.warning("settings.unreadable", tenant=tenant, reason=str(error) or "no answer", kept=known is not None)
            look = _Look(known, self._clock() + RETRY_SECONDS)
        else:
            _log_faults(tenant, stored, known)
            look = _Look(stored, self._clock() + self._cache_seconds)
        if len(self._known) >= TENANTS_REMEMBERED_MAX:
            self._known.clear()
        self._known[tenant] = look
        return look

    async def set(self, name: str, value: object, *, tenant: str, actor: str, place: Place = PLATFORM) -> None:
        """Stores a value at a place. Raises SettingRefused for what cannot be, StoreUnavailable."""
        after: _Value = {"value": check_setting(name, value, place.level)}
        await self._make(_Change(tenant, Address(name, place.level, place.name), after, actor))

    async def unset(self, name: str, *, tenant: str, actor: str, place: Place = PLATFORM) -> bool:
        """Takes the value at a place away; False where there was none. Raises as `set` does."""
        address = Address(get_key(name).name, place.level, place.name)
        return await self._make(_Change(tenant, address, None, actor))

    async def _make(self, change: _Change) -> bool:
        """With its audit row, in one transaction. Whether there was a value before."""
        with _faults_as_store_unavailable():
            async with self._engine.begin() as connection:
                before = await _replace(connection, change)
                if before or change.after:
                    await connection.execute(sa.insert(audit).values(_audit_entry(change, before)))
        self._known.pop(change.tenant, None)
        return before is not None


async def find_stored(engine: AsyncEngine, tenant: str) -> Stored:
    """All that the tenant has set, from the database. Raises StoreUnavailable."""
    query = sa.select(settings.c.key, settings.c.scope_kind, settings.c.scope_key, settings.c.value)
    with _faults_as_store_unavailable():
        async with engine.connect() as connection:
            rows = (await connection.execute(query.where(settings.c.tenant == tenant))).all()
    return read_stored((Address(*row[:3]), row.value) for row in rows)


@contextmanager
def _faults_as_store_unavailable() -> Generator[None]:
    """Also a table that is missing or closed to us: settings that cannot be read are no reason to stop."""
    try:
        with outages_as_store_unavailable():
            yield
    except SQLAlchemyError as error:
        kind = type(error).__name__
        raise StoreUnavailable(f"Postgres refused the table `settings` ({kind}): run `lorebus migrate`") from error


def _log_faults(tenant: str, stored: Stored, last: Stored | None) -> None:
    """Each once: only what the last look did not find."""
    for fault in stored.faults - (last.faults if last else frozenset()):
        _log.warning("settings.value_ignored", tenant=tenant, key=fault.key, set_at=fault.level)


async def _replace(connection: AsyncConnection, change: _Change) -> _Value | None:
    """Writes the value, or takes it away; returns what was there."""
    # One change after the other, so that the audit tells the true value before; readers do not wait.
    await connection.execute(sa.text("lock table settings in share row exclusive mode"))
    key, level, name = change.address
    row = {"tenant": change.tenant, "key": key, "scope_kind": level, "scope_key": name}
    found = (await connection.execute(sa.select(settings.c.value).filter_by(**row))).one_or_none()
    if change.after is None:
        await connection.execute(sa.delete(settings).filter_by(**row))
    else:
        value = {**change.after, "updated_by": change.actor, "updated_at": sa.func.now()}
        new = insert(settings).values(row | value)
        await connection.execute(new.on_conflict_do_update(index_elements=list(settings.primary_key), set_=value))
    return {"value": found.value} if found else None


def _audit_entry(change: _Change, before: _Value | None) -> dict[str, Any]:
    return {
        "tenant": change.tenant,
        "actor": change.actor,
        "action": "setting.set" if change.after else "setting.unset",
        "entity_kind": "setting",
        "entity_id": " ".join(filter(None, change.address)),
        "before": before or sa.null(),
        "after": change.after or sa.null(),
    }
