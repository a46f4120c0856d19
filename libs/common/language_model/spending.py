"""What each tenant's model calls cost today, and a cap that refuses the next one."""

from decimal import Decimal

from sqlalchemy.ext.asyncio import AsyncEngine

from libs.common.language_model.ledger import TODAY, Account, Book, Hold, Ledger
from libs.common.schema import model_holds, model_spend

_DAYS = Book(model_spend, model_holds, "day", TODAY)


class Spending:
    """`hold_seconds`: longer than a call may take."""

    def __init__(self, engine: AsyncEngine, cap_usd: float | None, *, hold_seconds: float) -> None:
        self._ledger = Ledger(engine, hold_seconds=hold_seconds)
        self._cap_usd = None if cap_usd is None else Decimal(str(cap_usd))

    async def check(self, tenant: str) -> None:
        """Raises SpendingRefused at or above the cap."""
        await self._ledger.check(self._account(tenant))

    async def hold(self, tenant: str, estimate_usd: Decimal | None) -> Hold:
        """Before a call. Raises SpendingRefused at or above the cap."""
        return await self._ledger.hold(self._account(tenant), estimate_usd)

    async def settle(self, hold: Hold, cost_usd: Decimal | None) -> None:
        """After a call that was answered, however useless; a cost that nobody told counts as it was estimated."""
        await self._ledger.settle(hold, cost_usd)

    async def release(self, hold: Hold) -> None:
        """After a call that was not answered."""
        await self._ledger.release(hold)

    def _account(self, tenant: str) -> Account:
        def explain(spent: Decimal, held: Decimal) -> str:
            return (
                f"tenant {tenant} has spent {spent:.4f} USD on model calls today, {held:.4f} more are in flight; the"
                f" cap is {self._cap_usd} USD a day. It is free again at 00:00 UTC;"
                " LOREBUS_LLM_SPEND_USD_PER_DAY_MAX raises it."
            )

        return Account(_DAYS, {"tenant": tenant}, self._cap_usd, explain)
