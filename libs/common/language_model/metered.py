"""The model as services use it: every call is counted against its tenant."""

from decimal import Decimal

from sqlalchemy.ext.asyncio import AsyncEngine

from libs.common.errors import ModelRefused, ModelUnavailable
from libs.common.language_model.choose import open_language_model
from libs.common.language_model.port import Completion, LanguageModel, Question
from libs.common.language_model.spending import Spending
from libs.common.settings import CommonSettings


async def open_metered_model(engine: AsyncEngine, settings: CommonSettings) -> "MeteredModel | None":
    """None where no model is set. Raises SetupIncomplete with the remedy."""
    model = await open_language_model(settings)
    if model is None:
        return None
    hold_seconds = 2 * settings.llm_timeout_seconds
    return MeteredModel(model, Spending(engine, settings.llm_spend_usd_per_day_max, hold_seconds=hold_seconds))


class MeteredModel:
    def __init__(self, model: LanguageModel, spending: Spending) -> None:
        self._model = model
        self._spending = spending

    @property
    def name(self) -> str:
        return self._model.name

    def estimate_usd(self, question: Question) -> Decimal | None:
        """What the call may cost at most, roughly; None where no price is known."""
        return self._model.estimate_usd(question)

    async def ask(self, tenant: str, question: Question) -> Completion:
        """Raises SpendingRefused, ModelRefused, ModelUnavailable or StoreUnavailable.

        A cancelled call keeps its hold until that runs out: nobody knows whether it is billed.
        """
        hold = await self._spending.hold(tenant, self._model.estimate_usd(question))
        try:
            completion = await self._model.complete(question)
        except (ModelRefused, ModelUnavailable):
            await self._spending.release(hold)
            raise
        await self._spending.settle(hold, completion.cost_usd)
        return completion
