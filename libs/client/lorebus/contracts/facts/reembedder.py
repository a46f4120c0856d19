"""Facts that the reembedder tells: how far the memories are embedded with another model."""

from typing import ClassVar, Literal

from lorebus.contracts.facts.fact import MemoryEvent


class ReembedEvent(MemoryEvent):
    """A fact about embedding the memories with another model. Counts are of rows."""

    model: str
    job_id: int | None = None


class ReembedStarted(ReembedEvent):
    kind: ClassVar[str] = "reembed_started"

    stale: int
    """Not embedded by the model yet."""
    total: int
    actor: str | None = None
    is_resumed: bool = False


class ReembedProgress(ReembedEvent):
    """`idle`: nothing was started, only counted. `waiting`: for the gate, the embedder or the database."""

    kind: ClassVar[str] = "reembed_progress"

    state: Literal["idle", "running", "waiting", "paused"]
    stale: int
    """When it started; those counted here are part of it."""
    done: int = 0
    failed: int = 0
    skipped: int = 0
    """Matched by the gate."""
    reason: str | None = None
    """What it waits for."""


class ReembedDone(ReembedEvent):
    """Every memory that could be is embedded; recall goes by the model from now on."""

    kind: ClassVar[str] = "reembed_done"

    done: int
    failed: int
    skipped: int
    previous_model: str | None = None
    """The one that served until now; its vectors are kept for a while. None: this one served already."""


class ReembedFailed(ReembedEvent):
    """The job ended without its model serving; the one before it goes on."""

    kind: ClassVar[str] = "reembed_failed"

    reason: str
    done: int
    failed: int
    skipped: int


class ReembedRefused(ReembedEvent):
    kind: ClassVar[str] = "reembed_refused"

    event_id: str
    reason: Literal["in_progress", "nothing_stale", "unknown_model", "not_platform"]


class ReembedRolledBack(ReembedEvent):
    """An administrator went back: `model` serves no more, or its job was given up."""

    kind: ClassVar[str] = "reembed_rolled_back"

    serving: str
    actor: str
