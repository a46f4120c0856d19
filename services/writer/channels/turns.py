"""A turn: what somebody asked the channel's assistant and what it answered becomes one memory.

The model sums it up, or rules do where none is set. The raw exchange stands in only where the model failed: not where
the gate or the budget refused, which mean that nothing is to be kept.
"""

import asyncio
from dataclasses import replace
from decimal import Decimal
from typing import Any

import structlog
from lorebus.contracts.facts.channels import ChannelWriteRefused
from lorebus.contracts.memory import WriteChannelTurn

from libs.common.channel_budget import ChannelBudget, Payer
from libs.common.channels import ChannelDirectory, NewChannel
from libs.common.domain.lexical import Frequencies
from libs.common.domain.memory import TIER_AGENT
from libs.common.embedding.serving import Models, TextVectors
from libs.common.errors import ModelUnavailable, SpendingRefused
from libs.common.inbox import Claim, Outcome
from services.writer.channels.model.asking import ChannelModel
from services.writer.channels.sources import ChannelSource, source_of_channel
from services.writer.channels.wording import Wording, extract_turn, is_worth_keeping, word_raw
from services.writer.evidence.cleaning import clean_text
from services.writer.rules import Draft, index_terms
from services.writer.service import WriterService
from services.writer.wording.lesson import Lesson

_log = structlog.get_logger("writer")


class TurnDrafting:
    """`words`: how common each word is in ordinary texts. `model_tries_max`: as for a lesson."""

    def __init__(self, model: ChannelModel | None, words: Frequencies, model_tries_max: int) -> None:
        self._model = model
        self._words = words
        self._model_tries_max = model_tries_max

    async def draft(self, turn: WriteChannelTurn, source: ChannelSource, payer: Payer, *, tries: int) -> Draft:
        """`turn` is clean already. Raises SpendingRefused, ModelUnavailable and StoreUnavailable."""
        if self._model is None:
            wording = await asyncio.to_thread(extract_turn, turn.text, turn.reply, self._words)
            return draft_turn(turn.user_id, wording, written_by="rules")
        try:
            answered = await self._model.word_turn(payer, source.key, turn.text, turn.reply)
        except ModelUnavailable:
            if tries < self._model_tries_max:
                raise
            return draft_turn(turn.user_id, word_raw(turn.text, turn.reply), written_by="raw")
        if answered.value is None:
            raw = draft_turn(turn.user_id, word_raw(turn.text, turn.reply), written_by="raw")
            return replace(raw, cost_usd=answered.cost_usd)
        return draft_turn(turn.user_id, answered.value, "model", answered.model, answered.cost_usd)


def draft_turn(
    user_id: str, wording: Wording, written_by: str, model: str | None = None, cost_usd: Decimal | None = None
) -> Draft:
    metadata: dict[str, Any] = {"userSlackId": user_id, "source": "turn", "writer": written_by}
    lesson = Lesson(wording.summary, wording.rationale, failure_type=None, confidence=None, metadata=metadata)
    return Draft(lesson, TIER_AGENT, index_terms(lesson), model=model, cost_usd=cost_usd)


class Turns:
    def __init__(
        self,
        writer: WriterService,
        directory: ChannelDirectory,
        drafting: TurnDrafting,
        budget: ChannelBudget,
        models: Models,
    ) -> None:
        self._writer = writer
        self._directory = directory
        self._drafting = drafting
        self._budget = budget
        self._models = models

    async def write(self, turn: WriteChannelTurn, claim: Claim) -> None:
        channel = await self._directory.register(
            claim.receipt.tenant, NewChannel(turn.key, turn.team_id, turn.is_private)
        )
        source = replace(source_of_channel(turn, claim, channel, "turn"), authors=(turn.user_id,))
        cleaned = await asyncio.to_thread(clean_turn, turn)
        if not channel.is_active:
            await self._writer.end(source, claim, Outcome("skipped", "channel_inactive"))
        elif not is_worth_keeping(cleaned.reply):
            await self._writer.end(source, claim, Outcome("skipped", "reply_too_short"))
        elif await self._writer.turn_away(source, claim) is None:
            await self._keep(cleaned, source, Payer(channel.tenant, channel.key, channel.owner), claim)

    async def _keep(self, turn: WriteChannelTurn, source: ChannelSource, payer: Payer, claim: Claim) -> None:
        async def embed(text: str) -> TextVectors:
            [vectors] = await self._budget.embed(self._models, payer, [text])
            return vectors

        try:
            draft = await self._drafting.draft(turn, source, payer, tries=claim.number)
            await self._writer.keep(source, draft, claim, embed=embed)
        except SpendingRefused as error:
            _log.warning("writer.channel_over_budget", event_id=source.event_id, error=str(error))
            refused = ChannelWriteRefused(**source.about(), reason="over_budget")
            await self._writer.end(source, claim, Outcome("refused", "over_budget"), [refused])


def clean_turn(turn: WriteChannelTurn) -> WriteChannelTurn:
    """Without credentials, and without what recall gave the assistant: a memory must not confirm itself."""
    return turn.model_copy(update={"text": clean_text(turn.text), "reply": clean_text(turn.reply)})
