"""What calls cost, counted by account and period, with a cap that refuses the next one.

A call holds its estimate before it is made and settles with its true cost, so that calls in flight count. Holds are
rows of their own with an end: one of a process that died runs out by itself, and no sum has to be mended. Periods and
ends go by Postgres' clock, in UTC.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.database import outages_as_store_unavailable
from libs.common.errors import SpendingRefused

_ZERO = Decimal(0)
_NOW = sa.func.clock_timestamp()
TODAY = sa.cast(sa.func.timezone("UTC", _NOW), sa.Date)
THIS_MONTH = sa.cast(sa.func.date_trunc("month", sa.func.timezone("UTC", _NOW)), sa.Date)


@dataclass(frozen=True, slots=True)
class Book:
    """The tables of one kind of account; `period` is the column that a new row begins with."""

    spend: sa.Table
    holds: sa.Table
    period: str
    current: sa.ColumnElement[Any]


@dataclass(frozen=True, slots=True)
class Account:
    """Whose calls are counted together. `payer`: the columns that name it. `cap_usd` None: no cap."""

    book: Book
    payer: Mapping[str, str]
    cap_usd: Decimal | None
    explain: Callable[[Decimal, Decimal], str]
    """What is said when it is refused, of what was spent and what is in flight."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A call in flight, at what it may cost. Without a cap there is nothing to hold against, hence no id."""

    account: Account
    usd: Decimal
    id: int | None = None


class Ledger:
    """`hold_seconds`: longer than a call may take. Every method raises StoreUnavailable."""

    def __init__(self, engine: AsyncEngine, *, hold_seconds: float) -> None:
        self._engine = engine
        self._hold = sa.text(f"interval '{hold_seconds} seconds'")

    async def check(self, account: Account) -> None:
        """Raises SpendingRefused at or above the cap."""
        if account.cap_usd is not None:
            with outages_as_store_unavailable():
                async with self._engine.begin() as connection:
                    await _refuse_at(account.cap_usd, connection, account)

    async def hold(self, account: Account, estimate_usd: Decimal | None) -> Hold:
        """Before a call. Raises SpendingRefused at or above the cap."""
        usd = estimate_usd or _ZERO
        if account.cap_usd is None:
            return Hold(account, usd)
        holds = account.book.holds
        new = insert(holds).values(**account.payer, usd=usd, expires_at=_NOW + self._hold)
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                await _refuse_at(account.cap_usd, connection, account)
                return Hold(account, usd, await connection.scalar(new.returning(holds.c.id)))

    async def settle(self, hold: Hold, cost_usd: Decimal | None) -> None:
        """After a call that was answered, however useless; a cost that nobody told counts as it was estimated."""
        cost = hold.usd if cost_usd is None else cost_usd
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                await connection.execute(_add(hold.account, calls=1, cost_usd=cost))
                await connection.execute(_end(hold))

    async def release(self, hold: Hold) -> None:
        """After a call that was not answered."""
        if hold.id is not None:
            with outages_as_store_unavailable():
                async with self._engine.begin() as connection:
                    await connection.execute(_end(hold))


async def _refuse_at(cap_usd: Decimal, connection: AsyncConnection, account: Account) -> None:
    # The period's row is locked until the hold stands, so that two calls cannot take the same last cent.
    spent = await connection.scalar(_add(account, calls=0, cost_usd=_ZERO)) or _ZERO
    holds = account.book.holds
    own = sa.and_(*(holds.c[name] == value for name, value in account.payer.items()))
    await connection.execute(sa.delete(holds).where(own, holds.c.expires_at < _NOW))
    held = await connection.scalar(sa.select(sa.func.sum(holds.c.usd)).where(own)) or _ZERO
    if spent + held >= cap_usd:
        raise SpendingRefused(account.explain(spent, held))


def _add(account: Account, *, calls: int, cost_usd: Decimal) -> Any:
    book = account.book
    spend, keys = book.spend.c, [*account.payer, book.period]
    new = insert(book.spend).values(**account.payer, calls=calls, cost_usd=cost_usd, **{book.period: book.current})
    added = {"calls": spend.calls + calls, "cost_usd": spend.cost_usd + cost_usd}
    return new.on_conflict_do_update(index_elements=keys, set_=added).returning(spend.cost_usd)


def _end(hold: Hold) -> sa.Delete:
    holds = hold.account.book.holds
    return sa.delete(holds).where(holds.c.id == hold.id)
