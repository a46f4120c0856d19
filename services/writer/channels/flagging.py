"""Org flagging: of what other channels of the organization learned, what should this one hear of?

Opt-in, and once in a while: the cooldown begins at each look, before the model is asked. Sources are active, public
channels of the same organization. What is found is named by ids; the words are asked for by them (`channel.flagged`),
and given as far as the channel may read them then.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import structlog
from lorebus.contracts.channels import AskFlagged, ChannelError, FlaggedNote, FlaggedReply
from lorebus.contracts.facts.channels import FlagReason

from libs.common.administered_settings import AdministeredSettings
from libs.common.channel_budget import ChannelBudget, Payer
from libs.common.channels import Channel, ChannelDirectory
from libs.common.domain.calibration import measure_background, z_of_setting
from libs.common.domain.fence import FencedItem, render_block
from libs.common.domain.memory import is_unverified
from libs.common.domain.setting_keys import CHANNEL_FLAG_COOLDOWN_HOURS, ORG_SIMILARITY_THRESHOLD
from libs.common.embedding.serving import Models
from libs.common.errors import EmbedderUnavailable, GateUnavailable, ModelUnavailable, SpendingRefused, StoreUnavailable
from libs.common.gate_client import GateClient
from services.writer.channels.model.asking import ChannelModel
from services.writer.channels.notes import ChannelNotes, Note, Search

INTERESTS_MAX = 10
CANDIDATES_MAX = 8

_log = structlog.get_logger("writer")


@dataclass(frozen=True, slots=True)
class Flagged:
    """What a look came to."""

    reason: FlagReason
    candidates: int = 0
    ids: Sequence[UUID] = ()


class Flagging:
    def __init__(
        self,
        notes: ChannelNotes,
        budget: ChannelBudget,
        models: Models,
        model: ChannelModel | None,
        *,
        gate: GateClient,
        settings: AdministeredSettings,
    ) -> None:
        self._notes = notes
        self._budget = budget
        self._models = models
        self._model = model
        self._gate = gate
        self._settings = settings

    async def look(self, channel: Channel, key: str) -> Flagged:
        """Never fails: whatever is down, the other parts of a pass are done. `key`: the event's."""
        try:
            return await self._look(channel, key)
        except SpendingRefused:
            return Flagged("over-budget")
        except (GateUnavailable, EmbedderUnavailable, ModelUnavailable, StoreUnavailable) as error:
            _log.warning("writer.flagging_failed", channel=channel.key, error=type(error).__name__)
            return Flagged("error")

    async def _look(self, channel: Channel, key: str) -> Flagged:
        if not channel.org_flagging_enabled:
            return Flagged("disabled")
        payer = Payer(channel.tenant, channel.key, channel.owner)
        await self._budget.check(payer)
        hours = await self._settings.get(CHANNEL_FLAG_COOLDOWN_HOURS, channel.tenant, channel.owner)
        if not await self._notes.begin_look(channel, timedelta(hours=hours)):
            return Flagged("cooldown")
        interests = await self._notes.find_newest(channel.tenant, channel.key, INTERESTS_MAX)
        if not interests:
            return Flagged("no-interest")
        notes = await self._find_candidates(channel, payer, interests)
        return await self._choose(payer, key, interests, notes) if notes else Flagged("no-signals")

    async def _find_candidates(self, channel: Channel, payer: Payer, interests: Sequence[Note]) -> list[Note]:
        """Near to what the channel is about, all its newest notes as one text; those that the gate clears."""
        joined = "\n".join(note.summary for note in interests)
        serving = self._models.serving
        [vectors] = await self._budget.embed(self._models, payer, [joined])
        background = measure_background(vectors.embedding, serving.background)
        setting = await self._settings.get(ORG_SIMILARITY_THRESHOLD, channel.tenant, channel.owner)
        cosine_min = background.mean + z_of_setting(setting) * background.deviation
        search = Search(vectors.model_id, vectors.embedding, cosine_min, CANDIDATES_MAX)
        return await clear_notes(self._gate, channel.tenant, await self._notes.find_elsewhere(channel, search))

    async def _choose(self, payer: Payer, key: str, interests: Sequence[Note], notes: Sequence[Note]) -> Flagged:
        """Without a model whatever is near enough is told."""
        if self._model is None:
            return Flagged("posted", len(notes), [note.id for note in notes])
        texts = [note.summary for note in interests]
        named = [(note.channel, note.summary) for note in notes]
        answered = await self._model.choose_flags(payer, key, texts, named)
        if answered.value is None:
            return Flagged("error", len(notes))
        chosen = [notes[place].id for place in answered.value]
        return Flagged("posted" if chosen else "skip", len(notes), chosen)


async def clear_notes(gate: GateClient, tenant: str, notes: Sequence[Note]) -> list[Note]:
    """Those in which the gate finds nothing. Raises GateUnavailable."""
    if not notes:
        return []
    texts = {str(note.id): note.summary for note in notes}
    screening = await gate.screen("recall", texts, tenant=tenant)
    return [note for note in notes if str(note.id) not in screening.matched]


class FlaggedDesk:
    """`channel.flagged`: the words of what was flagged."""

    def __init__(self, directory: ChannelDirectory, notes: ChannelNotes, gate: GateClient) -> None:
        self._directory = directory
        self._notes = notes
        self._gate = gate

    async def answer(self, question: AskFlagged, tenant: str) -> FlaggedReply:
        try:
            channel = await self._directory.find(tenant, question.key)
            if channel is None or not channel.org_flagging_enabled:
                return refuse("unknown", "the channel has not opted in to org flagging")
            notes = await self._notes.find_readable(channel, question.ids)
            return build_reply(await clear_notes(self._gate, tenant, notes))
        except GateUnavailable:
            return refuse("gate", "the gate did not answer; ask again")
        except StoreUnavailable:
            return refuse("store", "the database did not answer; ask again")


def refuse(error: ChannelError, reason: str) -> FlaggedReply:
    return FlaggedReply(error=error, reason=reason)


def build_reply(notes: Sequence[Note]) -> FlaggedReply:
    return FlaggedReply(
        notes=[FlaggedNote(id=str(note.id), channel=note.channel, summary=note.summary) for note in notes],
        block=render_block([_fence(note) for note in notes]),
    )


def _fence(note: Note) -> FencedItem:
    is_unknown = is_unverified(note.tier)
    return FencedItem(str(note.id), note.summary, "GENERAL", is_unverified=is_unknown, is_from_elsewhere=True)
