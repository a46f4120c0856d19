"""What each tenant's model calls cost today, and a cap that refuses the next one.

A call holds its estimate before it is made and settles with its true cost, so that calls in flight count. Holds are
rows of their own with an end: one of a process that died runs out by itself, and no sum has to be mended. Days and
ends go by Postgres' clock, in UTC.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.database import outages_as_store_unavailable
from libs.common.errors import SpendingRefused
from libs.common.schema import model_holds, model_spend

_ZERO = Decimal(0)
_NOW = sa.func.clock_timestamp()
_TODAY = sa.cast(sa.func.timezone("UTC", _NOW), sa.Date)


@dataclass(frozen=True, slots=True)
class Hold:
    """A call in flight, at what it may cost. Without a cap there is nothing to hold against, hence no id."""

    tenant: str
    usd: Decimal
    id: int | None = None


class Spending:
    """`hold_seconds`: longer than a call may take."""

    def __init__(self, engine: AsyncEngine, cap_usd: float | None, *, hold_seconds: float) -> None:
        self._engine = engine
        self._cap_usd = None if cap_usd is None else Decimal(str(cap_usd))
        self._hold = sa.text(f"interval '{hold_seconds} seconds'")

    async def check(self, tenant: str) -> None:
        """Raises SpendingRefused at or above the cap."""
        if self._cap_usd is not None:
            with outages_as_store_unavailable():
                async with self._engine.begin() as connection:
                    await _refuse_at(self._cap_usd, connection, tenant)

    async def hold(self, tenant: str, estimate_usd: Decimal | None) -> Hold:
        """Before a call. Raises SpendingRefused at or above the cap."""
        usd = estimate_usd or _ZERO
        if self._cap_usd is None:
            return Hold(tenant, usd)
        new = insert(model_holds).values(tenant=tenant, usd=usd, expires_at=_NOW + self._hold)
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                await _refuse_at(self._cap_usd, connection, tenant)
                return Hold(tenant, usd, await connection.scalar(new.returning(model_holds.c.id)))

    async def settle(self, hold: Hold, cost_usd: Decimal | None) -> None:
        """After a call that was answered, however useless; a cost that nobody told counts as it was estimated."""
        cost = hold.usd if cost_usd is None else cost_usd
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                await connection.execute(_add(hold.tenant, calls=1, cost_usd=cost))
                await connection.execute(_end(hold))

    async def release(self, hold: Hold) -> None:
        """After a call that was not answered."""
        if hold.id is not None:
            with outages_as_store_unavailable():
                async with self._engine.begin() as connection:
                    await connection.execute(_end(hold))


async def _refuse_at(cap_usd: Decimal, connection: AsyncConnection, tenant: str) -> None:
    # The day's row is locked until the hold stands, so that two calls cannot take the same last cent.
    spent = await connection.scalar(_add(tenant, calls=0, cost_usd=_ZERO)) or _ZERO
    is_over = sa.and_(model_holds.c.tenant == tenant, model_holds.c.expires_at < _NOW)
    await connection.execute(sa.delete(model_holds).where(is_over))
    held = await connection.scalar(sa.select(sa.func.sum(model_holds.c.usd)).filter_by(tenant=tenant)) or _ZERO
    if spent + held >= cap_usd:
        raise SpendingRefused(
            f"tenant {tenant} has spent {spent:.4f} USD on model calls today, {held:.4f} more are in flight; the cap"
            f" is {cap_usd} USD a day. It is free again at 00:00 UTC; LOREBUS_LLM_SPEND_USD_PER_DAY_MAX raises it."
        )


def _add(tenant: str, *, calls: int, cost_usd: Decimal) -> Any:
    new = insert(model_spend).values(tenant=tenant, day=_TODAY, calls=calls, cost_usd=cost_usd)
    added = {"calls": model_spend.c.calls + calls, "cost_usd": model_spend.c.cost_usd + cost_usd}
    return new.on_conflict_do_update(index_elements=["tenant", "day"], set_=added).returning(model_spend.c.cost_usd)


def _end(hold: Hold) -> sa.Delete:
    return sa.delete(model_holds).where(model_holds.c.id == hold.id)
