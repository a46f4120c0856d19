"""How a run becomes a draft: clean it, take its evidence, word the lesson.

The lesson is written by rules in any case. Where a model is configured its words replace them; where the model does
not answer, cannot be read or may not be paid, the lesson says so and stands.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lorebus.contracts.facts.fact import MemoryEvent
from lorebus.contracts.facts.writer import AttemptHistoryUnavailable
from lorebus.contracts.runs import RunFinished

from libs.common.errors import ModelUnavailable
from services.writer.digesting import Digesting
from services.writer.evidence.cleaning import clean_run
from services.writer.evidence.collection import Evidence, build_evidence, skip_reason
from services.writer.model.distiller import ModelDistiller, ModelLesson
from services.writer.model.prompt import build_user_message
from services.writer.rules import Draft, Skip, Source, draft_lesson, draft_model_lesson, mark_fallback
from services.writer.wording.lesson import write_lesson


@dataclass(frozen=True)
class Drafted:
    """The draft, or why there is none; and what the taps should hear of how it came about."""

    result: Draft | Skip
    facts: Sequence[MemoryEvent] = ()


class Drafting:
    def __init__(self, digesting: Digesting, distiller: ModelDistiller | None, model_tries_max: int) -> None:
        self._digesting = digesting
        self._distiller = distiller
        self._model_tries_max = model_tries_max

    async def draft(self, run: RunFinished, source: Source, *, tries: int) -> Drafted:
        """`tries`: how often this event was begun. Raises GateUnavailable, ModelUnavailable and StoreUnavailable."""
        cleaned, evidence = await asyncio.to_thread(_read, run)
        facts: list[MemoryEvent] = []
        if run.attempts is None:
            facts.append(AttemptHistoryUnavailable(**source.about(), reason="attempts is not a list"))
        if reason := skip_reason(cleaned, evidence):
            return Drafted(Skip(reason), facts)
        digested = await self._digesting.digest(run, source)
        evidence = replace(evidence, digest=digested.digest)
        return Drafted(await self._word(cleaned, evidence, source, tries), [*facts, *digested.facts])

    async def _word(self, run: RunFinished, evidence: Evidence, source: Source, tries: int) -> Draft:
        written = draft_lesson(await asyncio.to_thread(write_lesson, run, evidence), evidence)
        if self._distiller is None:
            return written
        history = evidence.history.render() if evidence.history else None
        message = build_user_message(run, evidence, history, evidence.digest.render() if evidence.digest else None)
        try:
            worded = await self._distiller.distil(source.tenant, source.event_id, message)
        except ModelUnavailable:
            if tries < self._model_tries_max:
                raise
            return mark_fallback(written, "model_unavailable")
        if isinstance(worded, ModelLesson):
            return draft_model_lesson(written, worded.worded, worded.model, worded.cost_usd)
        return mark_fallback(written, worded.reason, worded.cost_usd)


def _read(run: RunFinished) -> tuple[RunFinished, Evidence]:
    cleaned = clean_run(run)
    return cleaned, build_evidence(cleaned)
