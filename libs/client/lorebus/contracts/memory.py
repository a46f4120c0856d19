"""`memory.write` and `memory.save`: memories that no run's evidence stands behind (contract 2.4)."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from lorebus.contracts.envelope import Envelope, Identifier, Message, Repository, Text
from lorebus.contracts.runs import Readable

FailureType = Literal["CI_FAILURE", "REVIEW_REJECTION", "SECURITY_VIOLATION", "MERGE_CONFLICT"]
SaveRefusal = Literal[
    "invalid_request",
    "matched",
    "incomplete",
    "origin_quarantined",
    "gate",
    "embedder",
    "store",
    "in_work",
    "conflict",
    "bus",
    "deadline",
]
"""`bus` and `deadline` are the client's words: no service answered, or not in time."""


class WriteMemory(Envelope):
    """A note that its writer worded itself: what a step did, without a model."""

    schema_: Literal["memory.write"] = Field(default="memory.write", alias="schema")
    kind: Literal["note"]
    repository: Repository
    run_id: Identifier | None = None
    workflow_id: Text | None = None
    writer: Identifier
    """Who says so: `mergeConflictResolver`, `shellStep`, or a name of the caller's."""
    summary: Text = Field(min_length=1)
    rationale: Text = ""
    failure_type: Readable[FailureType] = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    supersede: bool = True
    """False keeps older twins active: for imports and evaluations."""


class SaveReply(Message):
    """The stored memory, or why there is none."""

    id: str | None = None
    created_at: datetime | None = None
    held: bool = False
    """It is stored, and recalled only once an administrator has released it."""
    error: SaveRefusal | None = None
    reason: str | None = None
    patterns: list[str] = Field(default_factory=list[str])
