"""Asks the model for a lesson: answer → repair → a changed retry → without the model.

A repair shows the model its answer and what was wrong; the changed retry starts afresh with shorter, stricter
instructions. What came of it is kept for the event, so that an outage of anything behind it asks and pays no second
time. An outage of the model itself is the caller's to hand on: the event comes again later.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Literal

import structlog

from libs.common.errors import ModelRefused, SpendingRefused
from libs.common.language_model.answers import KeptAnswer, ModelAnswers
from libs.common.language_model.metered import MeteredModel
from libs.common.language_model.port import Message, Question
from services.writer.model.answer import ANSWER_SCHEMA, Unreadable, WordedLesson, read_answer
from services.writer.model.prompt import load_instructions

PURPOSE = "lesson.1"
"""Another shape of what is kept gets another number."""
SHOWN_CHARS_MAX = 4_000
"""Of an unreadable answer, in the repair."""

Reason = Literal["unreadable_answer", "spending_refused", "model_refused"]

_log = structlog.get_logger("writer")


@dataclass(frozen=True, slots=True)
class ModelLesson:
    """A lesson in the model's words, with what all calls for it cost; None where no price is known."""

    worded: WordedLesson
    model: str
    cost_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class WithoutModel:
    """Why the lesson has to be written by rules, and what the calls cost all the same."""

    reason: Reason
    model: str
    cost_usd: Decimal | None = None


class ModelDistiller:
    def __init__(self, model: MeteredModel, answers: ModelAnswers, tokens_max: int) -> None:
        self._model = model
        self._answers = answers
        self._tokens_max = tokens_max

    async def distil(self, tenant: str, event_id: str, user_message: str) -> ModelLesson | WithoutModel:
        """Raises ModelUnavailable and StoreUnavailable: outages, after which the event comes again."""
        if kept := await self._answers.find_answer(tenant, event_id, PURPOSE):
            return _of_kept(kept)
        talk = _Talk(self._model, tenant, self._tokens_max)
        result = await self._word(talk, event_id, user_message)
        if isinstance(result, ModelLesson) or result.reason == "unreadable_answer":
            await self._answers.keep_answer(tenant, event_id, PURPOSE, _to_keep(result))
        return result

    async def _word(self, talk: "_Talk", event_id: str, user_message: str) -> ModelLesson | WithoutModel:
        try:
            worded = await _ask_until_readable(talk, user_message)
        except (SpendingRefused, ModelRefused) as error:
            reason = "spending_refused" if isinstance(error, SpendingRefused) else "model_refused"
            _log.warning(f"writer.{reason}", event_id=event_id, error=str(error))
            return WithoutModel(reason, talk.model.name, talk.cost_usd)
        if isinstance(worded, Unreadable):
            _log.warning("writer.answer_unreadable", event_id=event_id, faults=worded.faults)
            return WithoutModel("unreadable_answer", talk.model.name, talk.cost_usd)
        return ModelLesson(worded, talk.model.name, talk.cost_usd)


@dataclass(slots=True)
class _Talk:
    """All calls for one lesson."""

    model: MeteredModel
    tenant: str
    tokens_max: int
    costs_usd: list[Decimal] = field(default_factory=list[Decimal])

    @property
    def cost_usd(self) -> Decimal | None:
        return sum(self.costs_usd, Decimal(0)) if self.costs_usd else None

    async def ask(
        self, messages: Sequence[Message], temperature: float | None = None
    ) -> tuple[str, WordedLesson | Unreadable]:
        question = Question(messages, self.tokens_max, temperature, ANSWER_SCHEMA)
        completion = await self.model.ask(self.tenant, question)
        if completion.cost_usd is not None:
            self.costs_usd.append(completion.cost_usd)
        # Masking a long answer takes a while.
        return completion.text, await asyncio.to_thread(read_answer, completion.text)


async def _ask_until_readable(talk: _Talk, user_message: str) -> WordedLesson | Unreadable:
    told, user = load_instructions(), Message("user", user_message)
    opening = [Message("system", told.lesson), user]
    text, answer = await talk.ask(opening)
    if not isinstance(answer, Unreadable):
        return answer
    # Some providers refuse an empty message.
    shown = Message("assistant", text[:SHOWN_CHARS_MAX].strip() or "(empty)")
    repair = Message("user", told.repair.replace("{faults}", answer.faults))
    _, answer = await talk.ask([*opening, shown, repair])
    if not isinstance(answer, Unreadable):
        return answer
    _, answer = await talk.ask([Message("system", told.lesson_strict), user], temperature=0.0)
    return answer


def _to_keep(result: ModelLesson | WithoutModel) -> KeptAnswer:
    answer = {"lesson": asdict(result.worded)} if isinstance(result, ModelLesson) else {"reason": result.reason}
    return KeptAnswer(answer, result.model, result.cost_usd)


def _of_kept(kept: KeptAnswer) -> ModelLesson | WithoutModel:
    if lesson := kept.answer.get("lesson"):
        return ModelLesson(WordedLesson(**lesson), kept.model, kept.cost_usd)
    return WithoutModel(kept.answer["reason"], kept.model, kept.cost_usd)
