"""Passive ingestion: of a page of messages that people wrote to each other a few facts are kept, each with its authors.

Only in channels that have opted in. The cursor moves before the facts are looked for, so that a page is paid for once;
a page that was in work when its service died is read again from where it began.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

import structlog
from lorebus.contracts.channels import ChannelMessage
from lorebus.contracts.facts.channels import ChannelIngested, ChannelWriteRefused
from lorebus.contracts.facts.fact import MemoryEvent
from lorebus.contracts.gate import Origin
from lorebus.contracts.memory import WriteChannelMessages

from libs.common.administered_settings import AdministeredSettings
from libs.common.channel_budget import ChannelBudget, Payer
from libs.common.channels import Channel, ChannelDirectory
from libs.common.domain.calibration import cosine_of_likeness
from libs.common.domain.memory import TIER_OUTSIDE
from libs.common.domain.setting_keys import CHANNEL_DEDUP_THRESHOLD, CHANNEL_INGEST_LIMIT
from libs.common.embedding.serving import Models
from libs.common.errors import EmbeddingRefused, ModelUnavailable, SpendingRefused
from libs.common.gate_client import GateClient, Screening
from libs.common.inbox import Claim, Outcome
from services.writer.channels.model.asking import ChannelModel
from services.writer.channels.pages import Page, choose_messages
from services.writer.channels.sources import ChannelSource, source_of_channel
from services.writer.channels.store import Batch, ChannelStore
from services.writer.channels.wording import Fact, extract_facts
from services.writer.evidence.cleaning import clean_text
from services.writer.refusals import build_matched, build_unscanned
from services.writer.rows import NewLesson
from services.writer.rules import Draft, index_terms
from services.writer.service import WriterService
from services.writer.wording.lesson import Lesson

_log = structlog.get_logger("writer")

WrittenBy = Literal["model", "rules"]


@dataclass(frozen=True, slots=True)
class Found:
    """The facts of a page, as drafts with their authors."""

    drafts: Sequence[tuple[ChannelSource, Draft]] = ()
    written_by: WrittenBy | None = None


class FactFinding:
    def __init__(self, model: ChannelModel | None, model_tries_max: int) -> None:
        self._model = model
        self._model_tries_max = model_tries_max

    async def find(self, page: Page, source: ChannelSource, payer: Payer, *, tries: int) -> Found:
        """Raises SpendingRefused, ModelUnavailable and StoreUnavailable. A model that fails finds nothing."""
        if not page.messages:
            return Found()
        messages = await asyncio.to_thread(clean_messages, page.messages)
        if self._model is None:
            return Found([draft_fact(source, fact) for fact in extract_facts(messages)], "rules")
        try:
            answered = await self._model.find_facts(payer, source.key, messages)
        except ModelUnavailable:
            if tries < self._model_tries_max:
                raise
            return Found(written_by="model")
        cost_usd = answered.cost_usd and answered.cost_usd / max(1, len(answered.value or ()))
        facts = [draft_fact(source, fact, answered.model, cost_usd) for fact in answered.value or ()]
        return Found(facts, "model")


def clean_messages(messages: Sequence[ChannelMessage]) -> list[ChannelMessage]:
    return [one.model_copy(update={"text": clean_text(one.text)}) for one in messages]


def draft_fact(
    source: ChannelSource, fact: Fact, model: str | None = None, cost_usd: Decimal | None = None
) -> tuple[ChannelSource, Draft]:
    """What people said is vouched for by nobody."""
    metadata = {"source": "passive-ingest", "writer": "model" if model else "rules"}
    lesson = Lesson(fact.wording.summary, fact.wording.rationale, None, None, metadata)
    draft = Draft(lesson, TIER_OUTSIDE, index_terms(lesson), model=model, cost_usd=cost_usd)
    return replace(source, authors=fact.authors), draft


@dataclass(frozen=True, slots=True)
class Needs:
    """What a page is read with."""

    directory: ChannelDirectory
    store: ChannelStore
    gate: GateClient
    budget: ChannelBudget
    models: Models
    settings: AdministeredSettings


class Ingesting:
    def __init__(self, writer: WriterService, finding: FactFinding, needs: Needs) -> None:
        self._writer = writer
        self._finding = finding
        self._needs = needs

    async def read(self, page: WriteChannelMessages, claim: Claim) -> None:
        channel = await self._needs.directory.find(claim.receipt.tenant, page.key)
        source = source_of_channel(page, claim, channel, "passive-ingest")
        if channel is None or not channel.is_active or not channel.passive_ingest_enabled:
            await self._end_unread(source, claim, Outcome("skipped", _why_unread(channel)))
        elif await self._writer.turn_away(source, claim) is None:
            await self._read(page, channel, source, claim)

    async def _read(self, page: WriteChannelMessages, channel: Channel, source: ChannelSource, claim: Claim) -> None:
        try:
            await self._needs.budget.check(Payer(channel.tenant, channel.key, channel.owner))
            chosen = await self._choose(page, channel, source)
            batch = await self._build_batch(chosen, channel, source, claim)
        except SpendingRefused as error:
            _log.warning("writer.channel_over_budget", event_id=source.event_id, error=str(error))
            refused = ChannelWriteRefused(**source.about(), reason="over_budget")
            await self._end_unread(source, claim, Outcome("refused", "over_budget"), [refused])
            return
        self._writer.tell_end(source, await self._needs.store.insert_facts(claim, batch))

    async def _end_unread(
        self, source: ChannelSource, claim: Claim, outcome: Outcome, facts: Sequence[MemoryEvent] = ()
    ) -> None:
        self._writer.tell_end(source, await self._needs.store.end_unread(claim, outcome, facts))

    async def _choose(self, page: WriteChannelMessages, channel: Channel, source: ChannelSource) -> Page:
        """The messages to read; from now on the cursor stands behind them."""
        limit = await self._needs.settings.get(CHANNEL_INGEST_LIMIT, channel.tenant, channel.owner)
        after = await self._needs.store.find_start(channel, source.key)
        chosen = choose_messages(page.messages, after, limit)
        if chosen.cursor is not None:
            await self._needs.store.move_cursor(channel, source.key, after, chosen.cursor)
        return chosen

    async def _build_batch(self, page: Page, channel: Channel, source: ChannelSource, claim: Claim) -> Batch:
        payer = Payer(channel.tenant, channel.key, channel.owner)
        found = await self._finding.find(page, source, payer, tries=claim.number)
        screening = await self._screen(source, found)
        refused: list[MemoryEvent] = []
        facts: list[NewLesson] = []
        for ordinal, (own, draft) in enumerate(found.drafts):
            verdict = find_own(screening, ordinal)
            if verdict.matched or verdict.incomplete:
                refused.append(_refuse(own, draft, verdict))
            elif (new := await self._prepare(own, draft, claim, verdict, payer)) is not None:
                facts.append(replace(new, ordinal=ordinal))
        told = ChannelIngested(
            tenant=source.tenant,
            event_id=source.event_id,
            channel=channel.key,
            messages_read=len(page.messages),
            facts_extracted=len(found.drafts),
            facts_written=0,
            written_by=found.written_by,
        )
        return Batch(source, facts, await self._find_cosine_max(channel), told, refused)

    async def _screen(self, source: ChannelSource, found: Found) -> Screening:
        texts = {
            f"{ordinal}.{part}": text
            for ordinal, (_, draft) in enumerate(found.drafts)
            for part, text in draft.texts().items()
        }
        if not texts:
            return Screening("", {}, frozenset())
        origin = Origin(kind=source.schema_name, run_id=None, writer=source.agent_key)
        return await self._needs.gate.screen("write", texts, tenant=source.tenant, origin=origin)

    async def _prepare(
        self, source: ChannelSource, draft: Draft, claim: Claim, verdict: Screening, payer: Payer
    ) -> NewLesson | None:
        """None where the embedding model does not take it: the others go on."""
        try:
            [vectors] = await self._needs.budget.embed(self._needs.models, payer, [draft.lesson.summary])
        except EmbeddingRefused:
            return None
        return await self._writer.prepare(source, draft, claim, verdict, vectors)

    async def _find_cosine_max(self, channel: Channel) -> float:
        setting = await self._needs.settings.get(CHANNEL_DEDUP_THRESHOLD, channel.tenant, channel.owner)
        return cosine_of_likeness(setting, self._needs.models.serving.background)


def find_own(screening: Screening, ordinal: int) -> Screening:
    """What was found in the texts of one fact."""
    prefix = f"{ordinal}."

    def own(labels: Mapping[str, list[str]]) -> dict[str, list[str]]:
        return {id_: names for id_, names in labels.items() if id_.startswith(prefix)}

    incomplete = frozenset(id_ for id_ in screening.incomplete if id_.startswith(prefix))
    return Screening(screening.pattern_set, own(screening.matched), incomplete, own(screening.watched))


def _refuse(source: ChannelSource, draft: Draft, verdict: Screening) -> MemoryEvent:
    return build_matched(source, draft, verdict.patterns) if verdict.matched else build_unscanned(source, draft)


def _why_unread(channel: Channel | None) -> str:
    if channel is None:
        return "channel_unknown"
    return "ingest_disabled" if channel.is_active else "channel_inactive"
