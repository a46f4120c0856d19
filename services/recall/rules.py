"""What recall decides: pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any, Literal
from uuid import UUID

from lorebus.contracts.recall import (
    ExplainedLesson,
    RelatedLesson,
    Scope,
)

from libs.common.domain.calibration import Background
from libs.common.domain.relevance import gate_of_setting, strictness_of

LIMIT_MAX = 10
ENTRIES_MAX = 100
ENTRIES_DEFAULT = 10
CHANNEL_ITEMS_MAX = 50
DIGEST_ITEMS = 15
"""Of a channel's newest, where the question does not say (spec 9)."""
EVERYTHING = "*"
EXCERPT_CHARS_MAX = 1_000
"""Of an entry in a reply: a hundred of them, twice over, fit into one message of the bus."""
_THE_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)

MATCHED_NOTE = "[withheld: the memory gate found a pattern of prompt injection in this text]"
UNSCANNED_NOTE = "[withheld: this text could not be scanned]"
HELD_NOTE = "[withheld: this text waits for an administrator: `lorebus pending list`]"


@dataclass(frozen=True, slots=True)
class Found:
    """An item that the recall statement found, before the gate saw it."""

    id: UUID
    summary: str
    failure_type: str | None
    confidence: float | None
    created_at: datetime
    run_id: str | None
    pattern_set: str
    """The set that cleared the summary when it was written."""
    similarity: float | None
    """None: no vector was asked with."""
    coverage: float
    tier: int
    rank: float = 0.0
    same_failure: bool = False
    """An error line of the query stands in its evidence."""
    variant_group: UUID | None = None
    finding_set: str | None = None
    """The latest set that matched the stored texts, and what of it did."""
    finding_patterns: Sequence[str] | None = None
    from_other_channel: bool = False


@dataclass(frozen=True, slots=True)
class ScopeName:
    """Where to look; the tenant is part of every look."""

    tenant: str
    kind: Scope
    key: str


def clamp_limit(limit: int, kind: Scope = "swe-lessons") -> int:
    """1 to 10 (spec 5); a channel's 50 (spec 10); entries are listed as well, so up to 100 (sessions spec 7)."""
    most = {"agent-memory": ENTRIES_MAX, "channel-memory": CHANNEL_ITEMS_MAX}.get(kind, LIMIT_MAX)
    return max(1, min(limit, most))


def is_listing(kind: Scope, query: str) -> bool:
    """Whether entries, or a channel's memory, are to be listed and not searched for."""
    return kind != "swe-lessons" and query.strip() == EVERYTHING


def cut_entries(kind: Scope, found: Sequence[Found]) -> Sequence[Found]:
    """Entries may be long: who wants the whole text reads it by its id."""
    if kind != "agent-memory":
        return found
    return [
        replace(item, summary=f"{item.summary[:EXCERPT_CHARS_MAX]}…") if len(item.summary) > EXCERPT_CHARS_MAX else item
        for item in found
    ]


@dataclass(frozen=True, slots=True)
class Bars:
    """What passes, in the statement's terms; either is enough, and so is the same failure."""

    cosine_min: float
    coverage_min: float


EVERYTHING_PASSES = Bars(cosine_min=-inf, coverage_min=0.0)


def bars_of(setting: float, background: Background) -> Bars:
    """The similarity setting in this model's cosines for this query; 0 lets everything through."""
    gate = gate_of_setting(setting)
    if gate is None:
        return EVERYTHING_PASSES
    return Bars(background.mean + gate.z_min * background.deviation, gate.coverage_min)


def bare_bars(setting: float) -> Bars:
    """The seed's literal rule: the cosine is the bar, and the words pass nothing."""
    return Bars(cosine_min=setting, coverage_min=inf) if setting > 0 else EVERYTHING_PASSES


def blind_bars(setting: float) -> Bars:
    """Where no vector is asked with: the words alone."""
    gate = gate_of_setting(setting)
    return Bars(cosine_min=inf, coverage_min=gate.coverage_min) if gate else EVERYTHING_PASSES


def tighten(bars: Bars, background: Background, size: int) -> Bars:
    """The bars in a scope of so many items. The seed's literal rule is the same in any scope."""
    if bars.coverage_min == inf:
        return bars
    strictness = strictness_of(size)
    cosine_min = background.mean + (bars.cosine_min - background.mean) * strictness
    return Bars(cosine_min, bars.coverage_min * strictness)


def created_after(now: datetime, age_days_max: int) -> datetime:
    """Only memories made since then are recalled."""
    return now - timedelta(days=age_days_max) if age_days_max else _THE_BEGINNING


def find_flagged(found: Sequence[Found], pattern_set: str | None) -> dict[str, list[str]]:
    """Patterns by id of those in which the set in force was found to match already."""
    return {
        str(item.id): list(item.finding_patterns or ())
        for item in found
        if item.finding_set is not None and item.finding_set == pattern_set
    }


def needs_screening(found: Sequence[Found], pattern_set: str | None) -> list[Found]:
    """Those of which the pattern set in force has said nothing yet; all of them when it is not known."""
    return [item for item in found if pattern_set is None or pattern_set not in (item.pattern_set, item.finding_set)]


def without(found: Sequence[Found], refused: Collection[str]) -> list[Found]:
    """Those that the gate let through, in their order; nothing takes the place of a dropped one."""
    return [item for item in found if str(item.id) not in refused]


@dataclass(frozen=True, slots=True)
class Stored:
    """A lesson as explain finds it, with what it stands on."""

    id: UUID
    repository: str
    summary: str
    rationale: str
    failure_type: str | None
    confidence: float | None
    created_at: datetime
    run_id: str | None
    agent_key: str | None
    metadata: Mapping[str, Any]
    is_superseded: bool
    is_consolidated: bool
    is_held: bool = False
    merged_from: Sequence[tuple[UUID, str]] = ()
    replaced: Sequence[tuple[UUID, str]] = ()
    variants: Sequence[tuple[UUID, str]] = ()

    @property
    def status(self) -> Literal["superseded", "consolidated", "held", "active"]:
        if self.is_superseded:
            return "superseded"
        if self.is_consolidated:
            return "consolidated"
        return "held" if self.is_held else "active"

    @property
    def evidence(self) -> dict[str, Any]:
        return dict(self.metadata.get("evidence", {}))

    def texts(self) -> dict[str, str]:
        """Every text that explain would show, by where it stands."""
        own = {"summary": self.summary, "rationale": self.rationale}
        if quote := self.evidence.get("quote"):
            own["quote"] = str(quote)
        return own | {str(id_): summary for id_, summary in (*self.merged_from, *self.replaced, *self.variants)}


def build_explained(lesson: Stored, shown: Mapping[str, str]) -> ExplainedLesson:
    """The lesson with the texts that may be shown."""
    evidence = lesson.evidence | ({"quote": shown["quote"]} if "quote" in shown else {})
    return ExplainedLesson(
        id=str(lesson.id),
        repository=lesson.repository,
        status=lesson.status,
        summary=shown["summary"],
        rationale=shown["rationale"],
        failure_type=lesson.failure_type,
        confidence=lesson.confidence,
        created_at=lesson.created_at,
        run_id=lesson.run_id,
        written_by=lesson.agent_key,
        outcome=lesson.metadata.get("outcome"),
        evidence=evidence,
        merged_from=_relate(lesson.merged_from, shown),
        replaced=_relate(lesson.replaced, shown),
        variants=_relate(lesson.variants, shown),
    )


def _relate(related: Sequence[tuple[UUID, str]], shown: Mapping[str, str]) -> list[RelatedLesson]:
    return [RelatedLesson(id=str(id_), summary=shown[str(id_)]) for id_, _ in related]


def build_held(lesson: Stored) -> ExplainedLesson:
    """That it is there and whose it is: what is not to be recalled is not to be read this way either."""
    bare = replace(lesson, metadata={"outcome": lesson.metadata.get("outcome")})
    return build_explained(bare, dict.fromkeys(bare.texts(), HELD_NOTE))


def withhold(texts: Mapping[str, str], matched: Collection[str], incomplete: Collection[str]) -> dict[str, str]:
    """The texts with a note in place of each that the gate did not clear: explain tells that something is there."""
    return {
        place: MATCHED_NOTE if place in matched else UNSCANNED_NOTE if place in incomplete else text
        for place, text in texts.items()
    }
