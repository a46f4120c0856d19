"""What the writer decides: pure, so that every rule can be read and tested by itself."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from itertools import chain
from typing import Any

from lorebus.contracts.memory import WriteMemory
from lorebus.contracts.recall import Scope
from lorebus.contracts.runs import RunFinished
from lorebus.contracts.subjects import MEMORY_WRITE, RUN_FINISHED

from libs.common.domain.fingerprint import FINGERPRINTS_MAX, fingerprint_failure
from libs.common.domain.lexical import tokenize
from libs.common.domain.memory import TIER_AGENT, TIER_OUTSIDE, TIER_SYSTEM_EVIDENCE, event_key, screened_text
from libs.common.domain.strings import find_strings
from services.writer.evidence.cleaning import clean_note
from services.writer.evidence.collection import Evidence
from services.writer.model.answer import WordedLesson
from services.writer.wording.lesson import Lesson
from services.writer.wording.note import build_note

AGENT_KEY = "commitToMemory"
MODEL_FREE_WRITERS = frozenset({"mergeConflictResolver", "shellStep"})

TERMS_MAX = 1_000


@dataclass(frozen=True)
class Source:
    """The event that a lesson is made from, and whose it is."""

    tenant: str
    schema_name: str
    event_id: str
    repository: str
    evidence_at: datetime
    agent_key: str
    run_id: str | None = None
    workflow_id: str | None = None
    team_id: str | None = None
    org_id: str | None = None
    scope_kind: Scope = "swe-lessons"
    """Whose key `repository` is: an entry stands in its project."""
    authors: tuple[str, ...] = ()
    """Whose messages it is made from: one chat user for a turn, several for a fact out of many messages."""

    def about(self) -> dict[str, Any]:
        """What every fact about this event says."""
        return {
            "tenant": self.tenant,
            "event_id": self.event_id,
            "run_id": self.run_id,
            "repository": self.repository,
            "written_by": self.agent_key,
        }

    @property
    def key(self) -> str:
        """The event among all kinds of events of the tenant; each kind has ids of its own."""
        return event_key(self.schema_name, self.event_id)

    @property
    def origin(self) -> str:
        """Who is held to account for it: a repository for its runs, each writer of a repository for its notes."""
        return self.repository if self.schema_name == RUN_FINISHED else f"{self.repository} {self.agent_key}"


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
    fingerprints: tuple[int, ...] = ()
    model: str | None = None
    cost_usd: Decimal | None = None
    is_superseding: bool = True

    def texts(self) -> dict[str, str]:
        """Everything of the draft that will be stored as text, for the gate: each part alone and the whole."""
        lesson = self.lesson
        parts = {"summary": lesson.summary, "rationale": lesson.rationale}
        parts["metadata"] = "\n".join(find_strings(lesson.metadata))
        parts["lesson"] = screened_text(lesson.summary, lesson.rationale)
        return {name: text for name, text in parts.items() if text}


def draft_lesson(lesson: Lesson, evidence: Evidence) -> Draft:
    """Written by rules."""
    return Draft(lesson, origin_tier(evidence), index_terms(lesson), fingerprint_evidence(evidence))


def draft_model_lesson(written: Draft, worded: WordedLesson, model: str, cost_usd: Decimal | None) -> Draft:
    """The model's words on the same evidence: what code sets goes over what the model says of it."""
    lesson = replace(
        written.lesson,
        summary=worded.summary,
        rationale=worded.rationale,
        failure_type=worded.failure_type,
        confidence=worded.confidence,
        metadata=worded.metadata | written.lesson.metadata,
    )
    tier = min(written.origin_tier, TIER_AGENT)
    return replace(written, lesson=lesson, origin_tier=tier, terms=index_terms(lesson), model=model, cost_usd=cost_usd)


def mark_fallback(written: Draft, reason: str, cost_usd: Decimal | None = None) -> Draft:
    """Written by rules though a model should have, and what its calls cost all the same."""
    metadata = written.lesson.metadata | {"writer": "extractive", "fallback": reason}
    return replace(written, lesson=replace(written.lesson, metadata=metadata), cost_usd=cost_usd)


def draft_note(note: WriteMemory) -> Draft:
    lesson = build_note(clean_note(note))
    tier = TIER_AGENT if note.writer in MODEL_FREE_WRITERS else TIER_OUTSIDE
    return Draft(lesson, tier, index_terms(lesson), is_superseding=note.supersede)


@dataclass(frozen=True)
class Trust:
    """How far a memory is trusted, and whether an administrator has to look at it before it is recalled."""

    tier: int
    is_held: bool = False


def weigh_trust(origin_tier: int, watched: Collection[str]) -> Trust:
    """Risky text counts as no more than an agent's word; what is no more than that already is held."""
    if not watched:
        return Trust(origin_tier)
    return Trust(min(origin_tier, TIER_AGENT), is_held=origin_tier <= TIER_AGENT)


def source_of_run(run: RunFinished, tenant: str, published_at: datetime) -> Source:
    return Source(
        tenant=tenant,
        schema_name=RUN_FINISHED,
        event_id=run.event_id,
        repository=run.repository,
        evidence_at=evidence_time(run.occurred_at, published_at),
        agent_key=AGENT_KEY,
        run_id=run.run_id,
        workflow_id=run.workflow_id,
        team_id=run.team_id,
        org_id=run.org_id,
    )


def source_of_note(note: WriteMemory, tenant: str, published_at: datetime) -> Source:
    return Source(
        tenant=tenant,
        schema_name=MEMORY_WRITE,
        event_id=note.event_id,
        repository=note.repository,
        evidence_at=evidence_time(note.occurred_at, published_at),
        agent_key=note.writer,
        run_id=note.run_id,
        workflow_id=note.workflow_id,
    )


def origin_tier(evidence: Evidence) -> int:
    """Logs and verdicts are the system's own word; tickets, notes and sign-offs are somebody's text."""
    return TIER_SYSTEM_EVIDENCE if evidence.ci_failure or evidence.rejection else TIER_AGENT


def index_terms(lesson: Lesson) -> tuple[str, ...]:
    """The words that find the lesson: of all it says, and of the evidence behind it."""
    text = "\n".join((lesson.summary, lesson.rationale, lesson.index_text))
    return tuple(dict.fromkeys(tokenize(text)))[:TERMS_MAX]


def fingerprint_evidence(evidence: Evidence) -> tuple[int, ...]:
    """Of the errors in the logs: a rejection is a person's words, which nobody repeats letter by letter."""
    logs = [evidence.ci_failure or "", *(other.text for other in evidence.other_failures)]
    found = chain.from_iterable(map(fingerprint_failure, logs))
    return tuple(dict.fromkeys(found))[:FINGERPRINTS_MAX]


def evidence_time(occurred_at: datetime | None, published_at: datetime) -> datetime:
    """When the run ended. Nobody can speak for the future: that would make a lesson that nothing replaces."""
    return min(occurred_at or published_at, published_at)
