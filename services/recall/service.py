"""Recall's story: a question comes in; the few lessons that fit go out, screened and fenced, always in time."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import structlog
from lorebus.contracts.events import LessonsRetrieved, MemoryEvent, RecallDropped, RetrievedLesson
from lorebus.contracts.recall import (
    ExplainReply,
    ExplainRequest,
    RecallReply,
    RecallRequest,
    SearchReply,
    SearchRequest,
)

from libs.common.administered_settings import AdministeredSettings
from libs.common.domain.calibration import measure_background
from libs.common.domain.lexical import Frequencies
from libs.common.domain.query import prepare_query
from libs.common.embedding.models import ServingModel
from libs.common.errors import EmbedderUnavailable, GateUnavailable, StoreUnavailable
from libs.common.gate_client import GateClient, Screening
from services.recall.drops import DropReports
from services.recall.journal import Journal
from services.recall.limits import Limits, find_limits
from services.recall.rules import (
    Found,
    ScopeName,
    bars_of,
    build_explained,
    build_held,
    build_reply,
    build_search_reply,
    cap_runs,
    withhold,
    without,
)
from services.recall.screening import Screener
from services.recall.store import Question, RecallRecord, RecallStore

_log = structlog.get_logger("recall")

FETCHED_MAX = 200
"""Where one run holds more places than its share: so far down the others are looked for."""


@dataclass(frozen=True)
class Lookups:
    """What a question is read against: the model, and how common words are anywhere."""

    model: ServingModel
    background_words: Frequencies


class RecallService:
    """recall.request → limits → prepare → embed → nearest in scope → gate.screen → fenced reply"""

    def __init__(
        self, store: RecallStore, gate: GateClient, lookups: Lookups, journal: Journal, settings: AdministeredSettings
    ) -> None:
        self._store = store
        self._gate = gate
        self._screener = Screener(gate)
        self._lookups = lookups
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
        if known is None:
            return RecallReply.empty()
        limits = await find_limits(self._settings, request, scope, known.owner)
        found = await self._find_fitting(await self._prepare(request, scope, limits))
        if not found:
            return RecallReply.empty()
        screening = await self._screener.screen(found, scope.tenant)
        kept = without(found, screening.matched)
        self._note(request, scope, kept, screening)
        return build_reply(kept, dropped=len(found) - len(kept))

    async def _find_fitting(self, question: Question) -> list[Found]:
        """What fits, of each run its share. Asks for more only where a run holds too much, so mostly once."""
        found = await self._store.find_fitting(question)
        capped = cap_runs(found, question.limit)
        if len(capped) < len(found) == question.limit:
            found = await self._store.find_fitting(replace(question, limit=FETCHED_MAX))
            return cap_runs(found, question.limit)
        return capped

    async def _prepare(self, request: RecallRequest, scope: ScopeName, limits: Limits) -> Question:
        model, words = self._lookups.model, self._lookups.background_words
        query = prepare_query(request.query, words, scope.key, request.agent)
        [vector] = await model.embedder.embed([query.embed_text])
        background = measure_background(vector, model.background)
        return Question(
            scope=scope,
            model_id=model.id,
            vector=vector,
            terms=query.terms,
            terms_known=[words.documents.get(term, 0) for term in query.terms],
            background_size=words.size,
            created_after=limits.created_after,
            background=background,
            bars=bars_of(limits.similarity_min, background),
            limit=limits.items_max,
            tier_min=limits.tier_min,
        )

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


def _retrieved(request: RecallRequest, scope: ScopeName, kept: Sequence[Found]) -> LessonsRetrieved:
    return LessonsRetrieved(
        tenant=scope.tenant,
        repository=scope.key,
        run_id=request.run_id,
        agent=request.agent,
        count=len(kept),
        lessons=[RetrievedLesson(id=str(item.id), failure_type=item.failure_type) for item in kept],
    )
