"""What the writer decides: pure, so that every rule can be read and tested by itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from lorebus.contracts.runs import RunFinished

from libs.common.domain.lexical import tokenize
from libs.common.domain.masking import mask_json
from libs.common.domain.memory import screened_text
from services.writer.evidence import Evidence, build_evidence, skip_reason
from services.writer.lesson import Lesson, write_lesson

AGENT_KEY = "commitToMemory"

TIER_SYSTEM_EVIDENCE = 2
TIER_AGENT = 1
TERMS_MAX = 1_000


@dataclass(frozen=True)
class Skip:
    """A run that gives no lesson, and why."""

    reason: str


@dataclass(frozen=True)
class Draft:
    """A lesson before it was screened."""

    lesson: Lesson
    origin_tier: int
    terms: tuple[str, ...]

    def texts(self) -> dict[str, str]:
        """Everything of the draft that will be stored as text, for the gate: each part alone and the whole."""
        parts = {"summary": self.lesson.summary, "rationale": self.lesson.rationale}
        if quote := self.lesson.metadata.get("evidence", {}).get("quote"):
            parts["quote"] = str(quote)
        return parts | {"lesson": screened_text(self.lesson.summary, self.lesson.rationale)}


def distil(run: RunFinished) -> Draft | Skip:
    """Masks credentials first, so that no later step can store, embed or log one; then evidence, then the lesson."""
    masked = mask_run(run)
    evidence = build_evidence(masked)
    if reason := skip_reason(masked, evidence):
        return Skip(reason)
    lesson = write_lesson(masked, evidence)
    return Draft(lesson=lesson, origin_tier=origin_tier(evidence), terms=index_terms(lesson))


def mask_run(run: RunFinished) -> RunFinished:
    """The run with every credential replaced. Transcripts stay behind: the extractive lesson reads none."""
    fields = run.model_dump(mode="json", by_alias=True, exclude={"transcripts"})
    return RunFinished.model_validate({**fields, **cast("dict[str, Any]", mask_json(_texts_of(fields)))})


def _texts_of(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: fields[name] for name in ("ticket", "pull_requests", "change", "attempts", "status")}


def origin_tier(evidence: Evidence) -> int:
    """Logs and verdicts are the system's own word; tickets and notes are somebody's text (architecture 3.11)."""
    return TIER_SYSTEM_EVIDENCE if evidence.ci_failure or evidence.rejection else TIER_AGENT


def index_terms(lesson: Lesson) -> tuple[str, ...]:
    """The words that find the lesson: of all it says, and of the evidence behind it."""
    text = "\n".join((lesson.summary, lesson.rationale, lesson.index_text))
    return tuple(dict.fromkeys(tokenize(text)))[:TERMS_MAX]


def evidence_time(occurred_at: datetime | None, published_at: datetime) -> datetime:
    """When the run ended. Nobody can speak for the future: that would make a lesson that nothing replaces."""
    return min(occurred_at or published_at, published_at)


@dataclass(frozen=True)
class Rival:
    """A lesson about the same thing: the new one, or an active one near it."""

    id: UUID
    evidence_at: datetime
    event_id: str
    origin_tier: int

    @property
    def age_order(self) -> tuple[datetime, str]:
        return self.evidence_at, self.event_id


@dataclass(frozen=True)
class Supersession:
    """Which active lessons the new one replaces, and which one replaces it, if any."""

    replaced: tuple[UUID, ...] = ()
    replaced_by: UUID | None = None


def supersede(new: Rival, near: Sequence[Rival]) -> Supersession:
    """Newer evidence replaces older, whatever the order of arrival; a lower tier never replaces a higher."""
    newer = [rival for rival in near if rival.age_order > new.age_order and rival.origin_tier >= new.origin_tier]
    older = [rival for rival in near if rival.age_order < new.age_order and rival.origin_tier <= new.origin_tier]
    if newer:
        return Supersession(replaced_by=max(newer, key=lambda rival: rival.age_order).id)
    return Supersession(replaced=tuple(sorted(rival.id for rival in older)))
