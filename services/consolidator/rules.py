"""What the consolidator decides: pure, so that every rule can be read and tested by itself."""

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

from libs.common.domain.lexical import tokenize
from libs.common.domain.memory import TIER_AGENT, is_unverified, lowest_tier, screened_text
from libs.common.domain.setting_cascade import Owner, Stored, resolve_value
from libs.common.domain.setting_keys import CONSOLIDATION_ENABLED, CONSOLIDATION_MIN_CLUSTER_SIZE

CANDIDATES_MAX = 20_000
"""Of a scope, the newest; more would take gigabytes and minutes."""
CLUSTERS_MAX = 100
"""Merged by one request, so that it ends in minutes and holds its scope for a second. The rest is for the next one."""
SUMMARY_CHARS_MAX = 1_200
RATIONALE_CHARS_MAX = 1_000
TERMS_MAX = 240
"""Three typical items; more would count against a merged memory, since long items rank lower."""

ScopeKind = Literal["swe-lessons", "channel-memory"]
LeftReason = Literal[
    "changed", "matched", "watched", "incomplete", "unreadable_answer", "spending_refused", "model_refused", "too_many"
]
"""Why a cluster stays as it is. `changed`: a source is no longer what was merged, or no longer active."""

AGENT_KEYS: dict[ScopeKind, str] = {"swe-lessons": "lessonConsolidator", "channel-memory": "channelAssistant"}


@dataclass(frozen=True, slots=True)
class Scope:
    """Where memories are merged: a repository's lessons, or a channel's memory."""

    id: int
    tenant: str
    kind: ScopeKind
    key: str
    team_id: str | None = None
    org_id: str | None = None
    items_active: int = 0

    @property
    def owner(self) -> Owner:
        channel = self.key if self.kind == "channel-memory" else None
        return Owner(channel=channel, team=self.team_id, organization=self.org_id)

    def about(self) -> dict[str, Any]:
        return {"tenant": self.tenant, "repository" if self.kind == "swe-lessons" else "channel": self.key}


@dataclass(frozen=True, slots=True)
class Job:
    """One request for one scope. `key`: the event among all kinds of events of the tenant."""

    scope: Scope
    event_id: str
    key: str

    def about(self) -> dict[str, Any]:
        """What every fact about it says."""
        return {**self.scope.about(), "event_id": self.event_id}


@dataclass(frozen=True, slots=True)
class Source:
    """An active memory of a cluster, as it was read."""

    id: UUID
    summary: str
    rationale: str
    failure_type: str | None
    confidence: float | None
    origin_tier: int
    evidence_at: datetime
    text_sha256: str
    terms: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Wording:
    """The texts of one merged memory."""

    summary: str
    rationale: str
    failure_type: str | None = None


@dataclass(frozen=True, slots=True)
class Merge:
    """A cluster with the texts that shall stand for it."""

    sources: Sequence[Source]
    wordings: Sequence[Wording]
    merged_by: Literal["model", "extract"]
    model: str | None = None
    cost_usd: Decimal | None = None
    watched: Collection[str] = ()
    """Patterns that only watch and matched."""

    @property
    def source_ids(self) -> list[UUID]:
        return [source.id for source in self.sources]

    @property
    def tier(self) -> int:
        """No more than the least of its sources; a model's words and risky ones count as an agent's at most."""
        lowest = lowest_tier(source.origin_tier for source in self.sources)
        return min(lowest, TIER_AGENT) if self.model or self.watched else lowest

    def texts(self) -> dict[str, str]:
        """Everything that will be stored as text, for the gate: each part alone and the whole."""
        parts: dict[str, str] = {}
        for ordinal, wording in enumerate(self.wordings):
            whole = screened_text(wording.summary, wording.rationale)
            named = {"summary": wording.summary, "rationale": wording.rationale, "whole": whole}
            parts |= {f"{ordinal}.{name}": text for name, text in named.items() if text}
        return parts


@dataclass(frozen=True, slots=True)
class Left:
    """A cluster that stays as it is."""

    source_ids: Sequence[UUID]
    reason: LeftReason
    patterns: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class MergedRow:
    """A merged memory as it is stored, but for its id and its vector."""

    summary: str
    rationale: str
    failure_type: str | None
    confidence: float | None
    origin_tier: int
    model: str | None
    cost_usd: Decimal | None
    metadata: dict[str, Any]
    terms: list[str]
    evidence_at: datetime


@dataclass(frozen=True, slots=True)
class Tally:
    """What a request came to."""

    found: int
    consolidated: int = 0
    sources: int = 0
    created: Sequence[UUID] = ()
    left: dict[str, int] = field(default_factory=dict[str, int])


def choose_enabled(scopes: Sequence[Scope], stored: Stored) -> list[Scope]:
    """Those whose owners let the schedule merge them, and that have enough to merge."""
    size_min = resolve_value(CONSOLIDATION_MIN_CLUSTER_SIZE, stored)
    return [
        scope
        for scope in scopes
        if scope.items_active >= size_min and resolve_value(CONSOLIDATION_ENABLED, stored, scope.owner)
    ]


def split_by_trust(tiers: Sequence[int]) -> list[list[int]]:
    """Places of what somebody vouches for, and of what nobody does: text from outside could else drag lessons down
    to its own tier, or put its words in their place."""
    places = range(len(tiers))
    return [[place for place in places if is_unverified(tiers[place]) is outside] for outside in (False, True)]


def build_rows(merge: Merge) -> list[MergedRow]:
    """The rows of a merge (spec 6): each with its share of the cost, and the provenance of all sources."""
    count = len(merge.wordings)
    metadata: dict[str, Any] = {
        "clusterSize": len(merge.sources),
        "consolidatedFrom": [str(source.id) for source in merge.sources],
        "merged_by": merge.merged_by,
    }
    return [
        MergedRow(
            summary=wording.summary,
            rationale=wording.rationale,
            failure_type=wording.failure_type or common_type(merge.sources),
            confidence=mean_confidence(merge.sources),
            origin_tier=merge.tier,
            model=merge.model,
            cost_usd=None if merge.cost_usd is None else merge.cost_usd / count,
            metadata=metadata,
            terms=choose_terms(wording, merge.sources),
            evidence_at=max(source.evidence_at for source in merge.sources),
        )
        for wording in merge.wordings
    ]


def common_type(sources: Sequence[Source]) -> str | None:
    """The failure type that all of them have."""
    types = {source.failure_type for source in sources}
    return types.pop() if len(types) == 1 else None


def mean_confidence(sources: Sequence[Source]) -> float | None:
    """Of those that are graded."""
    grades = [source.confidence for source in sources if source.confidence is not None]
    return sum(grades) / len(grades) if grades else None


def choose_terms(wording: Wording, sources: Sequence[Source]) -> list[str]:
    """The words that find it: its own, then those that most sources are found by."""
    own = tokenize(f"{wording.summary}\n{wording.rationale}")
    shared = Counter(term for source in sources for term in dict.fromkeys(source.terms))
    return list(dict.fromkeys([*own, *(term for term, _ in shared.most_common())]))[:TERMS_MAX]


def fingerprint(sources: Sequence[Source]) -> str:
    """Names a cluster by its members and their texts: what a model said of it holds for no other."""
    members = sorted(f"{source.id}:{source.text_sha256}" for source in sources)
    return hashlib.sha256(" ".join(members).encode()).hexdigest()[:32]


def count(found: int, merged: Sequence[Merge], left: Sequence[Left], created: Sequence[UUID]) -> Tally:
    return Tally(
        found=found,
        consolidated=len(merged),
        sources=sum(len(merge.sources) for merge in merged),
        created=created,
        left=dict(sorted(Counter(one.reason for one in left).items())),
    )
