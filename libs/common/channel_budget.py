"""What a channel's model and embedding calls cost this month, and a cap that refuses the next one.

The tenant's cap of the day holds as well. What costs nothing, such as an embedder of this machine, is neither counted
nor refused. Providers of embeddings do not say what a call cost, so it is counted as estimated.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy.ext.asyncio import AsyncEngine

from libs.common.administered_settings import AdministeredSettings
from libs.common.domain.setting_cascade import Owner
from libs.common.domain.setting_keys import CHANNEL_MONTHLY_BUDGET_USD
from libs.common.domain.tokens import count_tokens
from libs.common.embedding.choose import is_local
from libs.common.embedding.prices import find_usd_per_million_tokens
from libs.common.embedding.serving import Models, TextVectors
from libs.common.errors import EmbedderUnavailable, ModelRefused, ModelUnavailable
from libs.common.language_model.ledger import THIS_MONTH, Account, Book, Ledger
from libs.common.language_model.metered import MeteredModel
from libs.common.language_model.port import Completion, Question
from libs.common.schema import channel_holds, channel_spend

_MONTHS = Book(channel_spend, channel_holds, "month", THIS_MONTH)
HOLD_SECONDS = 300.0
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Payer:
    """The channel that a call is made for, and whose settings hold for it."""

    tenant: str
    key: str
    owner: Owner


class ChannelBudget:
    """Methods raise SpendingRefused at or above the channel's cap, and StoreUnavailable."""

    def __init__(self, engine: AsyncEngine, settings: AdministeredSettings) -> None:
        self._ledger = Ledger(engine, hold_seconds=HOLD_SECONDS)
        self._settings = settings

    async def check(self, payer: Payer) -> None:
        """Whether anything may be spent at all."""
        await self._ledger.check(await self._account(payer))

    async def ask(self, model: MeteredModel, payer: Payer, question: Question) -> Completion:
        """Raises what `MeteredModel.ask` raises."""
        hold = await self._ledger.hold(await self._account(payer), model.estimate_usd(question))
        try:
            completion = await model.ask(payer.tenant, question)
        except (ModelRefused, ModelUnavailable):
            await self._ledger.release(hold)
            raise
        await self._ledger.settle(hold, completion.cost_usd)
        return completion

    async def embed(self, models: Models, payer: Payer, texts: Sequence[str]) -> list[TextVectors]:
        """By the serving model and those beside it. Raises EmbedderUnavailable."""
        names = [model.embedder.name for model in (models.serving, *models.further)]
        cost_usd = await _estimate_usd(names, texts)
        if not cost_usd:
            return [await models.embed(text) for text in texts]
        hold = await self._ledger.hold(await self._account(payer), cost_usd)
        try:
            vectors = [await models.embed(text) for text in texts]
        except EmbedderUnavailable:
            await self._ledger.release(hold)
            raise
        await self._ledger.settle(hold, cost_usd)
        return vectors

    async def _account(self, payer: Payer) -> Account:
        set_usd = await self._settings.get(CHANNEL_MONTHLY_BUDGET_USD, payer.tenant, payer.owner)
        cap_usd = Decimal(str(set_usd)) if set_usd else None

        def explain(spent: Decimal, held: Decimal) -> str:
            return (
                f"channel {payer.key} has spent {spent:.4f} USD this month, {held:.4f} more are in flight; its budget"
                f" is {cap_usd} USD. `lorebus settings set {CHANNEL_MONTHLY_BUDGET_USD.name}` raises it."
            )

        return Account(_MONTHS, {"tenant": payer.tenant, "channel_key": payer.key}, cap_usd, explain)


async def _estimate_usd(names: Iterable[str], texts: Sequence[str]) -> Decimal:
    """What it costs to embed these texts with these models; a model without a known price counts for nothing."""
    hosted = [name for name in names if not is_local(name)]
    prices = await asyncio.gather(*map(find_usd_per_million_tokens, hosted))
    tokens = sum(map(count_tokens, texts))
    return sum((Decimal(str(price)) for price in prices if price), Decimal(0)) * tokens / _MILLION
