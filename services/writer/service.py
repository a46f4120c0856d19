"""The writer's story: a finished run or a note comes in, a screened lesson is stored, and the taps are told."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import structlog
from lorebus.contracts.facts.fact import MemoryEvent
from lorebus.contracts.facts.writer import LessonSkipped
from lorebus.contracts.gate import Origin
from lorebus.contracts.memory import AnyWrite
from lorebus.contracts.runs import RunFinished

from libs.common.administered_settings import AdministeredSettings
from libs.common.bus.relay import Relay
from libs.common.domain.calibration import measure_background
from libs.common.domain.setting_cascade import Owner
from libs.common.domain.setting_keys import SUPERSEDE_RULE, SUPERSEDE_THRESHOLD
from libs.common.domain.supersession import NOTHING_IS_NEAR, Nearness, nearness_of
from libs.common.embedding.serving import Models, TextVectors
from libs.common.errors import ModelReplaced
from libs.common.gate_client import GateClient, Screening
from libs.common.inbox import Claim, Outcome
from services.writer.drafting import Drafting
from services.writer.entries import draft_write, source_of_write
from services.writer.refusals import build_matched, build_turned_away, build_unscanned
from services.writer.rows import Kept, NewLesson
from services.writer.rules import Draft, Skip, Source, source_of_run, weigh_trust
from services.writer.store import WriterStore

_log = structlog.get_logger("writer")

Embed = Callable[[str], Awaitable[TextVectors]]


class WriterService:
    """run.finished → evidence → lesson ┐
    memory.write → note or entry ───────┴→ gate.screen → embed → one transaction → lesson_written or lesson_held
    """

    def __init__(
        self,
        store: WriterStore,
        drafting: Drafting,
        gate: GateClient,
        models: Models,
        *,
        settings: AdministeredSettings,
        relay: Relay,
    ) -> None:
        self._store = store
        self._drafting = drafting
        self._gate = gate
        self._models = models
        self._settings = settings
        self._relay = relay

    async def write(self, run: RunFinished, claim: Claim) -> None:
        source = source_of_run(run, claim.receipt.tenant, claim.receipt.published_at)
        if await self.turn_away(source, claim):
            return
        drafted = await self._drafting.draft(run, source, tries=claim.number)
        if isinstance(drafted.result, Skip):
            reason = drafted.result.reason
            fact = LessonSkipped(**source.about(), reason=reason)
            await self.end(source, claim, Outcome("skipped", reason), [*drafted.facts, fact])
        else:
            await self.keep(source, drafted.result, claim, drafted.facts)

    async def write_told(self, message: AnyWrite, claim: Claim) -> None:
        source = source_of_write(message, claim.receipt.tenant, claim.receipt.published_at)
        await self.keep_told(source, message, claim)

    async def keep_told(self, source: Source, message: AnyWrite, claim: Claim) -> Kept | Outcome:
        """A note or an entry: what somebody worded already."""
        return await self.turn_away(source, claim) or await self.keep(source, draft_write(message), claim)

    async def turn_away(self, source: Source, claim: Claim) -> Outcome | None:
        """Ends an event of an origin in quarantine, before anything is done for it that costs."""
        until = await self._store.find_quarantine_end(source)
        if until is None:
            return None
        outcome = Outcome("refused", "origin_quarantined")
        return await self.end(source, claim, outcome, [build_turned_away(source, until)])

    async def keep(
        self,
        source: Source,
        draft: Draft,
        claim: Claim,
        facts: Sequence[MemoryEvent] = (),
        *,
        embed: Embed | None = None,
    ) -> Kept | Outcome:
        """Screens a draft, then stores it, or ends its event with a refusal. `embed`: another way to the vectors."""
        origin = Origin(kind=source.schema_name, run_id=source.run_id, writer=source.agent_key)
        screening = await self._gate.screen("write", draft.texts(), tenant=source.tenant, origin=origin)
        if screening.matched or screening.incomplete:
            return await self._refuse(source, draft, claim, screening, facts)
        vectors = await (embed or self._models.embed)(draft.lesson.summary)
        new = await self.prepare(source, draft, claim, screening, vectors)
        return await self._store_lesson(new, claim, facts)

    async def prepare(
        self, source: Source, draft: Draft, claim: Claim, screening: Screening, vectors: TextVectors
    ) -> NewLesson:
        """What the gate has cleared, with what decides of its life. Raises ModelReplaced."""
        trust = weigh_trust(draft.origin_tier, screening.watched_patterns)
        return NewLesson(
            source=source,
            draft=replace(draft, origin_tier=trust.tier),
            pattern_set=screening.pattern_set,
            vectors=vectors,
            nearness=await self._find_nearness(source, draft, vectors),
            watched=screening.watched_patterns,
            is_held=trust.is_held,
            told_at=claim.receipt.published_at,
        )

    async def _refuse(
        self, source: Source, draft: Draft, claim: Claim, screening: Screening, facts: Sequence[MemoryEvent]
    ) -> Outcome:
        """A match is an attack and says so; a scan that was not whole is an outage. Neither is tried again."""
        if not screening.matched:
            outage = Outcome("refused", "incomplete")
            return await self.end(source, claim, outage, [*facts, build_unscanned(source, draft)])
        fact = build_matched(source, draft, screening.patterns)
        outcome = await self._store.refuse_lesson(claim, source, screening.patterns, [*facts, fact])
        return self.tell_end(source, outcome)

    async def _store_lesson(self, new: NewLesson, claim: Claim, facts: Sequence[MemoryEvent]) -> Kept | Outcome:
        source = new.source
        kept = await self._store.insert_lesson(claim, new, facts)
        if isinstance(kept, Outcome):
            return self.tell_end(source, kept)
        self._relay.nudge()
        ended, replaced = "held" if kept.is_held else "written", len(kept.replaced)
        _log.info(f"writer.lesson_{ended}", event_id=source.event_id, lesson_id=str(kept.id), superseded=replaced)
        return kept

    async def _find_nearness(self, source: Source, draft: Draft, vectors: TextVectors) -> Nearness:
        if not draft.is_superseding:
            return NOTHING_IS_NEAR
        channel = source.repository if source.scope_kind == "channel-memory" else None
        owner = Owner(channel=channel, team=source.team_id, organization=source.org_id)
        rule = await self._settings.get(SUPERSEDE_RULE, source.tenant, owner)
        setting = await self._settings.get(SUPERSEDE_THRESHOLD, source.tenant, owner)
        serving = self._models.serving
        if serving.id != vectors.model_id:
            raise ModelReplaced("another embedding model serves by now")
        return nearness_of(rule, setting, measure_background(vectors.embedding, serving.background))

    async def end(self, source: Source, claim: Claim, outcome: Outcome, facts: Sequence[MemoryEvent] = ()) -> Outcome:
        """Ends the event without a memory."""
        await self._store.end_without_lesson(claim, outcome, facts)
        return self.tell_end(source, outcome)

    def tell_end(self, source: Source, outcome: Outcome) -> Outcome:
        """Once its transaction has committed."""
        self._relay.nudge()
        _log.info(f"writer.lesson_{outcome.status}", event_id=source.event_id, reason=outcome.reason)
        return outcome
