"""Asking for memories: recall.request, recall.search, recall.explain (contracts 2.2 and 2.3)."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field, model_validator

from lorebus.contracts.channels import ChannelId, channel_key
from lorebus.contracts.envelope import Message, Repository, Text

Scope = Literal["swe-lessons", "channel-memory", "agent-memory"]
Agent = Literal["implementer", "ci_fixer", "review_fixer", "gate_fixer", "reviewer"]
Mode = Literal["vector", "hybrid", "lexical"]
DegradedReason = Literal["gate", "embedder", "store", "deadline", "invalid_request", "bus"]

SCOPE_KEYS: dict[Scope, str] = {
    "swe-lessons": "repository",
    "channel-memory": "channel",
    "agent-memory": "project",
}


class RecallRequest(Message):
    """Which memories fit this text? One of `repository`, `channel` and `project` says where to look."""

    scope: Scope | None = None
    repository: Repository | None = None
    channel: ChannelId | None = None
    """Within `org_id`: the same id of another organization is another channel."""
    project: Text | None = None
    query: Text
    """For a project or a channel `*` lists what it has, the newest first."""
    limit: int | None = None
    """Clamped to 1-10, for a channel to 1-50, a project 1-100. None: the setting; a project 10, a channel's list 15."""
    tags: list[Text] = Field(default_factory=list[str])
    """Of a project only entries with any of these; none: all."""
    similarity_min: float | None = Field(default=None, ge=0, le=1)
    """None: the setting. 0 lets everything through in rank order."""
    mode: Mode | None = None
    """What finds and ranks: the vector alone, the words and the failure's fingerprint alone, or all. None: all."""
    tokens_max: int | None = Field(default=None, ge=1)
    """Of the block: whole items, best first. A token is counted as three bytes, so a block is rather shorter."""
    min_tier: int | None = Field(default=None, ge=0, le=3)
    """Only memories of this origin tier or a higher one. None: all."""
    run_id: Text | None = None
    agent: Agent | None = None
    team_id: Text | None = None
    org_id: Text | None = None
    deadline_ms: int = Field(default=1000, ge=50, le=30_000)

    @model_validator(mode="after")
    def _has_one_key(self) -> "RecallRequest":
        given = [name for name in SCOPE_KEYS.values() if getattr(self, name)]
        wanted = [SCOPE_KEYS[self.scope]] if self.scope else given
        if len(given) != 1 or given != wanted:
            raise ValueError("name exactly one of repository, channel and project")
        return self

    @property
    def scope_kind(self) -> Scope:
        return next(scope for scope, key in SCOPE_KEYS.items() if getattr(self, key))

    @property
    def scope_key(self) -> str:
        if self.channel:
            return channel_key(self.org_id, self.channel)
        return str(getattr(self, SCOPE_KEYS[self.scope_kind]))


class Scores(Message):
    """What an item's rank is made of."""

    similarity: float | None = None
    """Cosine to the query; None where no vector was asked with."""
    coverage: float = 0.0
    """Share of the query's weight in words that the item has: 0 none, 1 all."""
    fingerprint: bool = False
    """Its evidence holds an error line that the query holds too."""
    fused: float = 0.0
    """The rank, of the three together."""


class RecalledItem(Message):
    id: str
    summary: str
    failure_type: str | None = None
    confidence: float | None = None
    low_confidence: bool = False
    tier: int | None = None
    """How far its origin is trusted: 3 a person with rights, 2 system evidence, 1 an agent, 0 text from outside."""
    disputed: bool = False
    similarity: float
    """0 where no vector was asked with."""
    scores: Scores | None = None
    variant_of: str | None = None
    """An item before it that says nearly the same, with another version, number or name; the two count as one."""
    created_at: datetime
    run_id: str | None = None
    from_other_channel: bool = False


class RecallReply(Message):
    """Always an answer: items and a block for the prompt, or none and the reason why.

    Degraded by `embedder` it may hold items all the same: those that the words and the fingerprint found.
    """

    items: list[RecalledItem] = Field(default_factory=list[RecalledItem])
    block: str = ""
    dropped: int = 0
    omitted: int = 0
    """Items that fit the query, and not into `tokens_max`."""
    degraded: bool = False
    reason: DegradedReason | None = None
    detail: str | None = None
    """For `invalid_request`: which field is wrong."""

    @classmethod
    def empty(cls, degraded: DegradedReason | None = None, detail: str | None = None) -> "RecallReply":
        return cls(degraded=degraded is not None, reason=degraded, detail=detail)


class SearchRequest(Message):
    repository: Repository
    query: Text
    limit: int | None = None
    """Clamped to 1-10; None: the setting."""


class FoundLesson(Message):
    lesson_id: str
    summary: str
    failure_type: str | None = None
    confidence: float | None = None
    similarity: float


class SearchReply(Message):
    lessons: list[FoundLesson] = Field(default_factory=list[FoundLesson])
    degraded: bool = False
    reason: DegradedReason | None = None
    detail: str | None = None


class ExplainRequest(Message):
    repository: Repository | None = None
    """None looks in every repository of the tenant: for operators, not for agents."""
    lesson_id: Text


class RelatedLesson(Message):
    id: str
    summary: str


class ExplainedLesson(Message):
    """Where a lesson came from. A text that the gate refuses, or that is held, is withheld, not dropped."""

    id: str
    repository: str
    status: Literal["superseded", "consolidated", "held", "active"]
    summary: str
    rationale: str
    failure_type: str | None = None
    confidence: float | None = None
    created_at: datetime
    run_id: str | None = None
    written_by: str | None = None
    outcome: str | None = None
    evidence: dict[str, Any] = Field(default_factory=dict)
    merged_from: list[RelatedLesson] = Field(default_factory=list[RelatedLesson])
    replaced: list[RelatedLesson] = Field(default_factory=list[RelatedLesson])
    variants: list[RelatedLesson] = Field(default_factory=list[RelatedLesson])
    """Active lessons that say nearly the same, with another version, number or name."""


class ExplainReply(Message):
    lesson: ExplainedLesson | None = None
    degraded: bool = False
    reason: DegradedReason | None = None
    detail: str | None = None
