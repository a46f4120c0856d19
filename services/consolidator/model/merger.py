"""Asks the model for the text of a cluster: answer → repair → the cluster is left.

What came of it is kept for the event by the cluster's members, so that an outage of anything behind it pays no second
time. An outage of the model itself is the caller's to hand on: the event comes again later.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal

import structlog

from libs.common.channel_budget import ChannelBudget, Payer
from libs.common.errors import ModelRefused, SpendingRefused
from libs.common.language_model.answers import KeptAnswer, ModelAnswers
from libs.common.language_model.metered import MeteredModel
from libs.common.language_model.port import Completion, Message, Question
from services.consolidator.model.answer import ANSWER_SCHEMA, read_answer
from services.consolidator.model.prompt import build_user_message, load_instructions
from services.consolidator.rules import Job, Left, Merge, Scope, Source, Wording, fingerprint

PURPOSE = "merge.1"
"""Another shape of what is kept gets another number."""
SHOWN_CHARS_MAX = 4_000
"""Of an unreadable answer, in the repair."""

_log = structlog.get_logger("consolidator")


class ModelMerger:
    def __init__(self, model: MeteredModel, answers: ModelAnswers, budget: ChannelBudget, tokens_max: int) -> None:
        self._model = model
        self._budget = budget
        self._answers = answers
        self._tokens_max = tokens_max

    async def merge(self, job: Job, sources: Sequence[Source]) -> Merge | Left:
        """Raises ModelUnavailable and StoreUnavailable: outages, after which the event comes again."""
        purpose = f"{PURPOSE}.{fingerprint(sources)}"
        kept = await self._answers.find_answer(job.scope.tenant, job.key, purpose)
        if kept is None:
            try:
                kept = await self._ask(job.scope, sources)
            except (SpendingRefused, ModelRefused) as error:
                reason = "spending_refused" if isinstance(error, SpendingRefused) else "model_refused"
                _log.warning(f"consolidator.{reason}", event_id=job.event_id, error=str(error))
                return Left([source.id for source in sources], reason)
            await self._answers.keep_answer(job.scope.tenant, job.key, purpose, kept)
        return _read_kept(kept, sources)

    async def _ask(self, scope: Scope, sources: Sequence[Source]) -> KeptAnswer:
        talk = [Message("system", load_instructions("merge")), Message("user", build_user_message(sources))]
        costs: list[Decimal] = []
        faults = ""
        for _ in range(2):
            completion = await self._complete(scope, Question(talk, self._tokens_max, None, ANSWER_SCHEMA))
            costs += [] if completion.cost_usd is None else [completion.cost_usd]
            # Masking a long answer takes a while.
            read = await asyncio.to_thread(read_answer, completion.text)
            if not isinstance(read, str):
                return KeptAnswer({"lessons": [asdict(wording) for wording in read]}, self._model.name, _sum(costs))
            faults = read
            # Some providers refuse an empty message.
            shown = Message("assistant", completion.text[:SHOWN_CHARS_MAX].strip() or "(empty)")
            talk += [shown, Message("user", load_instructions("repair").replace("{faults}", read))]
        return KeptAnswer({"faults": faults}, self._model.name, _sum(costs))

    async def _complete(self, scope: Scope, question: Question) -> Completion:
        """A channel pays for its own merges."""
        if scope.kind == "channel-memory":
            return await self._budget.ask(self._model, Payer(scope.tenant, scope.key, scope.owner), question)
        return await self._model.ask(scope.tenant, question)


def _sum(costs_usd: Sequence[Decimal]) -> Decimal | None:
    return sum(costs_usd, Decimal(0)) if costs_usd else None


def _read_kept(kept: KeptAnswer, sources: Sequence[Source]) -> Merge | Left:
    lessons = kept.answer.get("lessons")
    if not lessons:
        return Left([source.id for source in sources], "unreadable_answer")
    wordings = [Wording(**lesson) for lesson in lessons]
    return Merge(sources, wordings, "model", kept.model, kept.cost_usd)
