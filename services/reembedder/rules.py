"""What is decided about a re-embedding: pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, TypeVar
from uuid import UUID

from lorebus.contracts.embedding import EmbeddingChanged
from lorebus.contracts.envelope import DEFAULT_TENANT

from libs.common.embedding.choose import is_local, is_possible, name_of

BATCH_ROWS = 100
CALLS_AT_ONCE = 4
FAILED_SHARE_MAX = 0.05
"""Above it the model does not take over: what it did not embed would not be recalled any more."""
PROGRESS_ROWS = 1_000
"""A fact about each so many."""
CHARS_PER_TOKEN = 4
"""Lessons are prose, mostly."""

State = Literal["running", "paused", "done", "failed", "rolled_back"]
RefusedReason = Literal["in_progress", "nothing_stale", "unknown_model", "not_platform"]
ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class Job:
    """One walk through all memories. `epoch` fences it: who takes it over voids who had it."""

    id: int
    model: str
    dimensions_asked: int | None
    model_id: int | None
    """None until the model has embedded the background."""
    previous_model_id: int | None
    state: State
    waits_for: str | None
    reason: str | None
    actor: str | None
    table_name: str | None
    cursor: UUID | None
    """The last row looked at; None: the walk begins."""
    stale: int
    """Rows when it started."""
    stale_chars: int
    usd_per_million_tokens: float | None
    done: int
    failed: int
    skipped: int
    worked_seconds: float
    epoch: int

    @property
    def counts(self) -> dict[str, Any]:
        """What facts say of it."""
        return {"done": self.done, "failed": self.failed, "skipped": self.skipped}

    @property
    def looked_at(self) -> int:
        return self.done + self.failed + self.skipped


@dataclass(frozen=True, slots=True)
class Situation:
    """What a wish meets."""

    live: Job | None
    stale: int
    """Rows that the wished model has not embedded."""
    is_serving: bool
    """The wished model serves already: a walk would only fill what it lacks."""


@dataclass(frozen=True, slots=True)
class Start:
    """A job is to be made."""


@dataclass(frozen=True, slots=True)
class Resume:
    """The paused one goes on."""


@dataclass(frozen=True, slots=True)
class Report:
    """Nothing starts; what is stale is told."""


@dataclass(frozen=True, slots=True)
class Refuse:
    reason: RefusedReason


Decision = Start | Resume | Report | Refuse


def normalise(changed: EmbeddingChanged) -> EmbeddingChanged:
    return changed.model_copy(update={"model": name_of(changed.model)})


def check_wish(changed: EmbeddingChanged, tenant: str) -> Refuse | None:
    """What is wrong with it whatever the state of things."""
    if tenant != DEFAULT_TENANT:
        return Refuse("not_platform")
    return None if is_possible(changed.model) else Refuse("unknown_model")


def decide(changed: EmbeddingChanged, situation: Situation) -> Decision:
    """A billed walk never starts by itself; there is one at a time."""
    live = situation.live
    if not changed.reembed and not is_local(changed.model):
        return Report()
    if live is not None:
        is_mine = changed.reembed and live.state == "paused" and live.model == changed.model
        return Resume() if is_mine else Refuse("in_progress")
    if situation.is_serving and situation.stale == 0:
        return Refuse("nothing_stale") if changed.reembed else Report()
    return Start()


def is_good_enough(job: Job) -> bool:
    """Whether so few rows failed that the model may take over. A single one may, unless it is all there is."""
    tried = job.done + job.failed
    return job.failed == 0 or (job.failed < tried and job.failed <= max(1, tried * FAILED_SHARE_MAX))


def is_milestone(before: int, after: int) -> bool:
    return before // PROGRESS_ROWS != after // PROGRESS_ROWS


def split(items: Sequence[ItemT], parts_max: int) -> list[Sequence[ItemT]]:
    """Into at most so many parts, each as long as the others or one shorter, in order."""
    size, longer = divmod(len(items), parts_max)
    bounds = [part * size + min(part, longer) for part in range(parts_max + 1)]
    return [items[start:end] for start, end in pairwise(bounds) if end > start]


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a job has before it. None: not known yet, or no price is."""

    left: int
    rows_per_second: float | None = None
    seconds: float | None = None
    tokens: int = 0
    cost_usd: float | None = None


def forecast(job: Job) -> Forecast:
    left = max(0, job.stale - job.looked_at)
    rate = job.looked_at / job.worked_seconds if job.worked_seconds > 0 and job.looked_at else None
    tokens = estimate_tokens(job.stale_chars * left // max(1, job.stale))
    known = Forecast(left, rate, left / rate if rate else None, tokens)
    return replace(known, cost_usd=estimate_usd(job.model, tokens, job.usd_per_million_tokens))


def estimate_tokens(chars: int) -> int:
    return -(-chars // CHARS_PER_TOKEN)


def estimate_usd(model: str, tokens: int, usd_per_million_tokens: float | None) -> float | None:
    """A model of this machine costs nothing; None where no price is known."""
    if is_local(model):
        return 0.0
    return None if usd_per_million_tokens is None else tokens * usd_per_million_tokens / 1_000_000
