"""The writer's story: a finished run comes in, a screened lesson is stored, and the taps are told."""

import asyncio
from typing import Any

import structlog
from lorebus.contracts.events import LessonRefused, LessonSkipped, MemoryEvent, WriteScanUnavailable
from lorebus.contracts.gate import Origin
from lorebus.contracts.runs import RunFinished

from libs.common.bus.relay import Relay
from libs.common.domain.memory import item_id_for
from libs.common.embedding.models import ServingModel
from libs.common.gate_client import GateClient, Screening
from libs.common.inbox import Claim, Outcome
from services.writer.rules import AGENT_KEY, Draft, Skip, distil, evidence_time
from services.writer.store import NewLesson, WriterStore

_log = structlog.get_logger("writer")


class WriterService:
    """run.finished → evidence → lesson → gate.screen → embed → one transaction → lesson_written"""

    def __init__(self, store: WriterStore, gate: GateClient, model: ServingModel, relay: Relay) -> None:
        self._store = store
        self._gate = gate
        self._model = model
        self._relay = relay

    async def write(self, run: RunFinished, claim: Claim) -> None:
        draft = await asyncio.to_thread(distil, run)
        if isinstance(draft, Skip):
            await self._end(
                claim, Outcome("skipped", draft.reason), LessonSkipped(**_of(run, claim), reason=draft.reason)
            )
            return
        screening = await self._screen(run, claim, draft)
        if screening.matched or screening.incomplete:
            await self._refuse(run, claim, draft, screening)
            return
        await self._store_lesson(run, claim, draft, screening)

    async def _screen(self, run: RunFinished, claim: Claim, draft: Draft) -> Screening:
        origin = Origin(kind="run", run_id=run.run_id, writer=AGENT_KEY)
        return await self._gate.screen("write", draft.texts(), tenant=claim.receipt.tenant, origin=origin)

    async def _refuse(self, run: RunFinished, claim: Claim, draft: Draft, screening: Screening) -> None:
        """A match is an attack and says so; a scan that was not whole is an outage. Neither is tried again."""
        about: dict[str, Any] = {**_of(run, claim), "failure_type": draft.lesson.failure_type}
        if screening.matched:
            outcome = Outcome("refused", "matched", patterns=screening.patterns)
            await self._end(claim, outcome, LessonRefused(**about, patterns=screening.patterns))
        else:
            await self._end(claim, Outcome("refused", "incomplete"), WriteScanUnavailable(**about))

    async def _store_lesson(self, run: RunFinished, claim: Claim, draft: Draft, screening: Screening) -> None:
        [embedding] = await self._model.embedder.embed([draft.lesson.summary])
        tenant = claim.receipt.tenant
        new = NewLesson(
            id=item_id_for(tenant, run.event_id),
            tenant=tenant,
            repository=run.repository,
            run_id=run.run_id,
            workflow_id=run.workflow_id,
            event_id=run.event_id,
            evidence_at=evidence_time(run.occurred_at, claim.receipt.published_at),
            agent_key=AGENT_KEY,
            origin_tier=draft.origin_tier,
            lesson=draft.lesson,
            terms=draft.terms,
            pattern_set=screening.pattern_set,
            model_id=self._model.id,
            embedding=embedding,
        )
        replaced = await self._store.insert_lesson(claim, new)
        self._relay.nudge()
        _log.info("writer.lesson_written", event_id=run.event_id, lesson_id=str(new.id), superseded=len(replaced))

    async def _end(self, claim: Claim, outcome: Outcome, event: MemoryEvent) -> None:
        await self._store.end_without_lesson(claim, outcome, event)
        self._relay.nudge()
        _log.info(f"writer.lesson_{outcome.status}", event_id=claim.receipt.event_id, reason=outcome.reason)


def _of(run: RunFinished, claim: Claim) -> dict[str, Any]:
    return {
        "tenant": claim.receipt.tenant,
        "event_id": run.event_id,
        "run_id": run.run_id,
        "repository": run.repository,
    }
