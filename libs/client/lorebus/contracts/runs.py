"""`run.finished`: what a run leaves behind (contract 2.1).

Only `run_id`, `repository` and `outcome` are required. Everything else is read leniently: a part that
cannot be read is dropped and the lesson is written from the rest.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar, cast

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from lorebus.contracts.envelope import Envelope, Identifier, Message, Repository, Text

T = TypeVar("T")

Outcome = Literal["MERGED", "MERGE_TIMED_OUT", "REVIEW_FAILED", "CI_FAILED", "COMPLETED"]
OUTCOMES: tuple[Outcome, ...] = ("MERGED", "MERGE_TIMED_OUT", "REVIEW_FAILED", "CI_FAILED", "COMPLETED")
_OUTCOME_BY_NAME: dict[str, Outcome] = {outcome: outcome for outcome in OUTCOMES}


def _readable(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    try:
        return validate(value)
    except ValidationError:
        return None


def _readable_items(value: Any, validate: ValidatorFunctionWrapHandler) -> list[Any]:
    kept: list[Any] = []
    for item in cast("list[Any]", value if isinstance(value, list) else []):
        kept += _readable([item], validate) or []
    return kept


def _is_list(value: Any) -> Any:
    if not isinstance(value, list):
        raise ValueError("not a list")
    return cast("list[Any]", value)


Readable = Annotated[T | None, WrapValidator(_readable)]
"""The value, or None where it does not fit: one odd field must not cost the whole run."""

ReadableItems = Annotated[list[T], WrapValidator(_readable_items)]
"""Those items of a list that fit."""

ReadableList = Annotated[ReadableItems[T], BeforeValidator(_is_list)]
"""As ReadableItems, where it matters that there was no list: inside a Readable it becomes None."""


class Ticket(Message):
    id: Text | None = None
    title: Text | None = None
    description: Text | None = None


class PullRequest(Message):
    number: int | None = None
    head_sha: Text | None = None
    ci_status: Text | None = None
    status: Text | None = None


class ChangedFile(Message):
    path: Text
    operation: Text | None = None
    lines_added: int | None = None
    lines_removed: int | None = None


class TestTotals(Message):
    failing: int | None = None
    passing: int | None = None
    total: int | None = None
    passed: bool | None = None


class Change(Message):
    head_sha: Text | None = None
    files: Readable[ReadableList[ChangedFile]] = None
    implementation_notes: Text | None = None
    tests: Readable[TestTotals] = None


class Finding(Message):
    severity: Text | None = None
    category: Text | None = None
    file: Text | None = None
    line: int | None = None
    text: Text | None = None
    suggested_fix: Text | None = None


class Verdict(Message):
    reviewer: Text = "reviewer"
    approved: bool = False
    crashed: bool = False
    findings: ReadableItems[Finding] = Field(default_factory=list[Finding])


class _Attempt(Message):
    at: Readable[datetime] = None
    activity_id: Text | None = None
    attempt: int = 1
    execution_id: Text | None = None
    batch: Text | None = None
    seq: int = 0


class ReviewAttempt(_Attempt):
    kind: Literal["review"]
    verdicts: ReadableItems[Verdict] = Field(default_factory=list[Verdict])


class CiAttempt(_Attempt):
    kind: Literal["ci"]
    log_tail: Text = ""


def _is_other(kind: str) -> str:
    if kind in {"review", "ci"}:
        raise ValueError("a kind with a form of its own")
    return kind


OtherKind = Annotated[Text, StringConstraints(pattern=r"^[\w .:/-]{1,60}$"), AfterValidator(_is_other)]


class OtherAttempt(_Attempt):
    """What else stopped the run: a sign-off that was refused, a gate, a step that threw, a wait that timed out."""

    kind: OtherKind
    text: Text = Field(default="", validation_alias=AliasChoices("text", "error", "output", "message", "log_tail"))
    """Which of these names it comes under is the publisher's choice."""


Attempt = ReviewAttempt | CiAttempt | OtherAttempt


class TranscriptPart(Message):
    sha256: Text | None = None
    encoding: Literal["identity", "gzip"] = "identity"
    data: str | None = None
    """base64; absent where `ref` names a part that was put before (`evidence.put`)."""
    ref: Text | None = None


class Transcript(Message):
    id: Text
    activity_type: Text | None = None
    recording_id: Text | None = None
    step_attempt: int = 1
    attempt: int = 1
    closed_at: datetime | None = None
    format: Text
    parts: list[TranscriptPart] = Field(default_factory=list[TranscriptPart])
    """All or nothing: a transcript with a hole would be read as if it were whole."""


def default_event_id(fields: Mapping[str, Any]) -> str:
    """The id of a run's event whose publisher gave it none."""
    return f"{fields.get('run_id')}:commitToMemory:{fields.get('outcome')}"


class RunFinished(Envelope):
    """A run ended: its outcome and its evidence."""

    schema_: Literal["run.finished"] = Field(default="run.finished", alias="schema")
    run_id: Identifier
    workflow_id: Text | None = None
    repository: Repository
    org_id: Text | None = None
    team_id: Text | None = None
    outcome: Text
    """One of OUTCOMES; anything else is read as COMPLETED and said so in the row's metadata."""
    status: Text | None = None
    ticket: Readable[Ticket] = None
    pull_requests: ReadableItems[PullRequest] = Field(default_factory=list[PullRequest])
    change: Readable[Change] = None
    attempts: Readable[ReadableList[Attempt]] = Field(default_factory=list[Attempt])
    """None: something was given, but no list."""
    transcripts: ReadableItems[Transcript] = Field(default_factory=list[Transcript])

    @model_validator(mode="before")
    @classmethod
    def _fill_event_id(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        fields = cast("dict[str, Any]", value)
        return {**fields, "event_id": fields.get("event_id") or default_event_id(fields)}

    @property
    def known_outcome(self) -> Outcome:
        """The outcome as the lesson writer reads it."""
        return _OUTCOME_BY_NAME.get(self.outcome, "COMPLETED")

    @property
    def reviews(self) -> list[ReviewAttempt]:
        return [attempt for attempt in self.attempts or () if isinstance(attempt, ReviewAttempt)]

    @property
    def ci_failures(self) -> list[CiAttempt]:
        return [attempt for attempt in self.attempts or () if isinstance(attempt, CiAttempt)]

    @property
    def other_failures(self) -> list[OtherAttempt]:
        return [attempt for attempt in self.attempts or () if isinstance(attempt, OtherAttempt)]
