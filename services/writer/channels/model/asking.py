"""Asks the model for a channel: answer → repair → without the model, on the channel's ledger.

What came of it is kept for the event, so that an outage of anything behind it asks and pays no second time. An outage
of the model itself, and a refusal to spend, are the caller's.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Generic, TypeVar

import structlog
from lorebus.contracts.channels import ChannelMessage

from libs.common.channel_budget import ChannelBudget, Payer
from libs.common.errors import ModelRefused
from libs.common.language_model.answers import KeptAnswer, ModelAnswers
from libs.common.language_model.metered import MeteredModel
from libs.common.language_model.port import Message, Question
from services.writer.channels.model.answer import FactsAnswer, FlagAnswer, TurnAnswer, read_facts, read_flags, read_turn
from services.writer.channels.model.prompt import load_instructions, render_flags, render_messages, render_turn
from services.writer.channels.wording import Fact, Wording

TURN, FACTS, FLAGS = "turn.1", "facts.1", "flags.1"
"""Another shape of what is kept gets another number."""
SHOWN_CHARS_MAX = 4_000
"""Of an unreadable answer, in the repair."""

ResultT = TypeVar("ResultT")

_log = structlog.get_logger("writer")


@dataclass(frozen=True, slots=True)
class Answered(Generic[ResultT]):
    """`value` None: the model's answers could not be read, or its provider refuses. The calls cost all the same."""

    value: ResultT | None
    model: str
    cost_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class _Asked(Generic[ResultT]):
    """One question, and how its answer is read and kept."""

    purpose: str
    instructions: str
    data: str
    schema: Mapping[str, Any]
    read: Callable[[str], ResultT | str]
    pack: Callable[[ResultT], Any]
    unpack: Callable[[Any], ResultT]


class ChannelModel:
    """Methods raise SpendingRefused, ModelUnavailable and StoreUnavailable. `key`: the event's (`event_key`)."""

    def __init__(self, model: MeteredModel, answers: ModelAnswers, budget: ChannelBudget, tokens_max: int) -> None:
        self._model = model
        self._answers = answers
        self._budget = budget
        self._tokens_max = tokens_max

    async def word_turn(self, payer: Payer, key: str, text: str, reply: str) -> Answered[Wording]:
        asked = _Asked(
            purpose=TURN,
            instructions=load_instructions("turn"),
            data=render_turn(text, reply),
            schema=TurnAnswer.model_json_schema(by_alias=False),
            read=read_turn,
            pack=asdict,
            unpack=lambda kept: Wording(**kept),
        )
        return await self._answer(payer, key, asked)

    async def find_facts(self, payer: Payer, key: str, messages: Sequence[ChannelMessage]) -> Answered[list[Fact]]:
        asked = _Asked(
            purpose=FACTS,
            instructions=load_instructions("facts"),
            data=render_messages(messages),
            schema=FactsAnswer.model_json_schema(by_alias=False),
            read=lambda answer: read_facts(answer, messages),
            pack=lambda facts: [asdict(fact) for fact in facts],
            unpack=lambda kept: [Fact(Wording(**one["wording"]), tuple(one["authors"])) for one in kept],
        )
        return await self._answer(payer, key, asked)

    async def choose_flags(
        self, payer: Payer, key: str, interests: Sequence[str], notes: Sequence[tuple[str, str]]
    ) -> Answered[list[int]]:
        asked = _Asked(
            purpose=FLAGS,
            instructions=load_instructions("flags"),
            data=render_flags(interests, notes),
            schema=FlagAnswer.model_json_schema(),
            read=lambda answer: read_flags(answer, len(notes)),
            pack=list,
            unpack=list,
        )
        return await self._answer(payer, key, asked)

    async def _answer(self, payer: Payer, key: str, asked: _Asked[ResultT]) -> Answered[ResultT]:
        kept = await self._answers.find_answer(payer.tenant, key, asked.purpose)
        if kept is None:
            kept = await self._ask(payer, asked)
            await self._answers.keep_answer(payer.tenant, key, asked.purpose, kept)
        value = kept.answer.get("value")
        return Answered(None if value is None else asked.unpack(value), kept.model, kept.cost_usd)

    async def _ask(self, payer: Payer, asked: _Asked[ResultT]) -> KeptAnswer:
        talk = [Message("system", asked.instructions), Message("user", asked.data)]
        costs_usd: list[Decimal] = []
        value: Any = None
        try:
            for _ in range(2):
                question = Question(talk, self._tokens_max, None, asked.schema)
                completion = await self._budget.ask(self._model, payer, question)
                costs_usd += [] if completion.cost_usd is None else [completion.cost_usd]
                # Masking a long answer takes a while.
                read = await asyncio.to_thread(asked.read, completion.text)
                if not isinstance(read, str):
                    value = asked.pack(read)
                    break
                # Some providers refuse an empty message.
                shown = Message("assistant", completion.text[:SHOWN_CHARS_MAX].strip() or "(empty)")
                talk += [shown, Message("user", load_instructions("repair").replace("{faults}", read))]
        except ModelRefused as error:
            _log.warning("writer.model_refused", channel=payer.key, error=str(error))
        return KeptAnswer({"value": value}, self._model.name, sum(costs_usd, Decimal(0)) if costs_usd else None)
