"""What a run of a pipeline tells the memory steps, and what they leave with it: values that a checkpoint can keep."""

from dataclasses import dataclass
from typing import Protocol

from lorebus.sessions.fence import render_block
from lorebus.sessions.records import Context


@dataclass(frozen=True, slots=True)
class Work:
    """What is being worked on, over many runs: its slug, else its id, is the project that memories belong to."""

    id: str | None = None
    slug: str | None = None
    name: str | None = None

    @property
    def project_id(self) -> str | None:
        return self.slug or self.id


@dataclass(frozen=True, slots=True)
class MemoryState:
    """That the fetch step ran, and the session that it opened, if it did."""

    session_id: str | None = None
    is_own: bool = False


class MemoryContext(Protocol):
    """What a host's own context must have to go through the memory steps."""

    @property
    def work(self) -> Work: ...

    @property
    def prompt(self) -> str | None: ...

    @property
    def item_count(self) -> int | None:
        """How many items the run has made so far; None where it makes none."""
        ...

    @property
    def memory_session_id(self) -> str | None:
        """Of whoever started the pipeline: it always wins, and is never closed by the pipeline."""
        ...

    memory_context: Context | None
    memory_state: MemoryState | None


@dataclass(slots=True)
class RunContext:
    """A context for pipelines that have none of their own."""

    work: Work
    prompt: str | None = None
    item_count: int | None = None
    memory_session_id: str | None = None
    memory_context: Context | None = None
    """Set by the fetch step where anything is remembered. Untrusted."""
    memory_state: MemoryState | None = None

    @property
    def memory_block(self) -> str:
        """Ready for a prompt, and empty where nothing is remembered."""
        return render_block(self.memory_context.content) if self.memory_context else ""
