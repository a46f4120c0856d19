"""The model as services use it: every call is counted against its tenant."""

from libs.common.errors import ModelRefused, ModelUnavailable
from libs.common.language_model.port import Completion, LanguageModel, Question
from libs.common.language_model.spending import Spending


class MeteredModel:
    def __init__(self, model: LanguageModel, spending: Spending) -> None:
        self._model = model
        self._spending = spending

    @property
    def name(self) -> str:
        return self._model.name

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
