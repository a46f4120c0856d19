"""Recall's story: a question comes in; the few lessons that fit go out, screened and fenced, always in time."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import structlog
from lorebus.contracts.facts.fact import MemoryEvent
from lorebus.contracts.facts.recall import LessonsRetrieved, RecallDropped, RetrievedLesson
from lorebus.contracts.recall import (
    DegradedReason,
    ExplainReply,
    ExplainRequest,
    RecallReply,
    RecallRequest,
    SearchReply,
    SearchRequest,
)

from libs.common.administered_settings import AdministeredSettings
from libs.common.domain.setting_cascade import NOBODY, Owner
from libs.common.errors import EmbedderUnavailable, GateUnavailable, StoreUnavailable
from libs.common.gate_client import GateClient, Screening
from services.recall.asking import Asking, Lookups
from services.recall.channels import OtherChannels
from services.recall.choosing import choose_items, drop_repeats, fill_up, may_hide_more
from services.recall.drops import DropReports
from services.recall.journal import Journal
from services.recall.limits import Limits, find_limits
from services.recall.replies import build_reply, build_search_reply
from services.recall.rules import (
    Found,
    ScopeName,
    build_explained,
    build_held,
    cut_entries,
    is_listing,
    withhold,
    without,
)
from services.recall.screening import Screener
from services.recall.store import KnownScope, Question, RecallRecord, RecallStore

_log = structlog.get_logger("recall")

FETCHED_MAX = 200
"""Where one run, or one text, holds more places than its share: so far down the others are looked for."""


@dataclass(frozen=True)
class Sought:
    """What was found, and whether something was down that would have found more."""

    items: Sequence[Found]
    degraded: DegradedReason | None = None


class RecallService:
    """recall.request → limits → prepare → embed → nearest in scope → gate.screen → fenced reply"""

    def __init__(
        self,
        store: RecallStore,
        gate: GateClient,
        lookups: Lookups,
        journal: Journal,
        settings: AdministeredSettings,
        *,
        other_channels: OtherChannels,
    ) -> None:
        self._store = store
        self._other_channels = other_channels
        self._gate = gate
        self._screener = Screener(gate)
        self._asking = Asking(lookups)
        self._journal = journal
        self._settings = settings
        self._drops = DropReports()

    async def watch_gate(self) -> None:
        await self._screener.watch()

    async def answer(self, request: RecallRequest, tenant: str) -> RecallReply:
        try:
            async with asyncio.timeout(request.deadline_ms / 1000):
                return await self._recall(request, ScopeName(tenant, request.scope_kind, request.scope_key))
        except GateUnavailable:
            # An unscreened memory could steer the agent, so no answer is the safe answer.
            return RecallReply.empty(degraded="gate")
        except EmbedderUnavailable:
            return RecallReply.empty(degraded="embedder")
        except StoreUnavailable:
            return RecallReply.empty(degraded="store")
        except TimeoutError:
            return RecallReply.empty(degraded="deadline")

    async def search(self, request: SearchRequest, tenant: str) -> SearchReply:
        """The same path, asked by an agent's tool."""
        asked = RecallRequest(repository=request.repository, query=request.query, limit=request.limit)
        return build_search_reply(await self.answer(asked, tenant))

    async def explain(self, request: ExplainRequest, tenant: str) -> ExplainReply:
        """Where a lesson came from; texts that the gate does not clear are withheld."""
        try:
            lesson_id = UUID(request.lesson_id)
        except ValueError:
            return ExplainReply()
        try:
            lesson = await self._store.find_lesson(tenant, request.repository, lesson_id)
            if lesson is None:
                return ExplainReply()
            if lesson.status == "held":
                return ExplainReply(lesson=build_held(lesson))
            screening = await self._gate.screen("recall", lesson.texts(), tenant=tenant)
        except GateUnavailable:
            return ExplainReply(degraded=True, reason="gate")
        except StoreUnavailable:
            return ExplainReply(degraded=True, reason="store")
        return ExplainReply(
            lesson=build_explained(lesson, withhold(lesson.texts(), screening.matched, screening.incomplete))
        )

    async def _recall(self, request: RecallRequest, scope: ScopeName) -> RecallReply:
        if not request.query.strip():
            return RecallReply.empty()
        known = await self._store.find_scope(scope)
        if known is None and scope.kind != "channel-memory":
            return RecallReply.empty()
        limits = await find_limits(self._settings, request, scope, owner_of(scope, known))
        sought = await self._find(request, scope, limits)
        if not sought.items:
            return RecallReply.empty(sought.degraded)
        screening = await self._screener.screen(sought.items, scope.tenant)
        kept = without(sought.items, screening.matched)
        self._note(request, scope, kept, screening)
        reply = build_reply(cut_entries(scope.kind, kept), len(sought.items) - len(kept), request.tokens_max)
        return reply.model_copy(update={"degraded": True, "reason": sought.degraded}) if sought.degraded else reply

    async def _find(self, request: RecallRequest, scope: ScopeName, limits: Limits) -> Sought:
        if is_listing(scope.kind, request.query):
            return Sought(await self._store.find_newest(scope, request.tags, limits.items_max))
        question = await self._asking.prepare(request, scope, limits)
        is_degraded = question.is_blind and limits.mode != "lexical"
        found = await self._find_fitting(question)
        if scope.kind == "channel-memory" and not question.is_blind and len(found) < limits.items_max:
            places = limits.items_max - len(found)
            elsewhere = await self._other_channels.find(request, question, limits, places)
            found = fill_up(found, elsewhere)
        return Sought(found, "embedder" if is_degraded else None)

    async def _find_fitting(self, question: Question) -> list[Found]:
        """What fits, chosen by `choosing`. Asks for more only where its first look may hide some, so mostly once."""
        found = await self._store.find_fitting(question)
        chosen = _choose(found, question)
        if len(found) == question.limit and may_hide_more(found, chosen):
            return _choose(await self._store.find_fitting(replace(question, limit=FETCHED_MAX)), question)
        return chosen

    def _note(self, request: RecallRequest, scope: ScopeName, kept: Sequence[Found], screening: Screening) -> None:
        events: list[MemoryEvent] = []
        if kept and scope.kind == "swe-lessons":
            events.append(_retrieved(request, scope, kept))
        if due := self._drops.due(screening.matched, time.monotonic()):
            _log.warning("recall.items_dropped", ids=due, patterns=screening.patterns)
            events.append(RecallDropped(tenant=scope.tenant, ids=due, count=len(due), patterns=screening.patterns))
        self._journal.note(
            RecallRecord(
                scope=scope,
                run_id=request.run_id,
                agent=request.agent,
                item_ids=[item.id for item in kept],
                dropped_ids=[UUID(id_) for id_ in screening.matched],
                events=events,
            )
        )


def owner_of(scope: ScopeName, known: KnownScope | None) -> Owner:
    """Whose settings hold: a channel has its own as well, also before anything was written to it."""
    owner = known.owner if known else NOBODY
    return replace(owner, channel=scope.key) if scope.kind == "channel-memory" else owner


def _choose(found: Sequence[Found], question: Question) -> list[Found]:
    return choose_items(drop_repeats(found, question.scope.kind), question.limit)


def _retrieved(request: RecallRequest, scope: ScopeName, kept: Sequence[Found]) -> LessonsRetrieved:
    return LessonsRetrieved(
        tenant=scope.tenant,
        repository=scope.key,
        run_id=request.run_id,
        agent=request.agent,
        count=len(kept),
        lessons=[RetrievedLesson(id=str(item.id), failure_type=item.failure_type) for item in kept],
    )
