"""The two memory steps of a pipeline, and what is noted of a run that does not reach its end (spec 3).

fetch, save and rollback share one session: the orchestrator's where there is one, else one that the fetch step opens
and the last of them closes. Nothing here fails a pipeline but a wrong wiring.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final, Generic, TypeVar

from lorebus.errors import LorebusError
from lorebus.masking.texts import Masker
from lorebus.pipeline.context import MemoryContext, MemoryState
from lorebus.pipeline.digest import build_failure, build_success
from lorebus.pipeline.hooks import Build, StepDefinition
from lorebus.pipeline.settings import ModifierSettings, is_enabled, read_modifier_settings
from lorebus.sessions.guard import CALL_SECONDS, Failed, Guard
from lorebus.sessions.provider import Memory
from lorebus.sessions.records import Context, ContextRequest, Metadata, Observation, Session

MODIFIER_ID: Final = "memory-pipeline-modifier"
FETCH_STEP_ID: Final = "memory-fetch-context"
SAVE_STEP_ID: Final = "memory-save"
TARGETS: Final = ("standard-pipeline", "agent-pipeline")
STEPS: Final = (
    StepDefinition(FETCH_STEP_ID, "Fetch what earlier runs learned", "first", provides=("memoryContext",)),
    StepDefinition(SAVE_STEP_ID, "Save a digest of this run", "last"),
)

ContextT = TypeVar("ContextT", bound=MemoryContext)

log = logging.getLogger("lorebus")


class StepUnknown(LorebusError):
    """The pipeline is wired wrongly: it asks for a step that its modifier did not give."""


class MemoryModifier(Generic[ContextT]):
    """Off unless the Work's setting `enabled` is exactly true. `memory` is None where the host has no facade.

    A host with pipelines of other names says which in `targets`; there is no name for all.
    """

    id: str = MODIFIER_ID

    def __init__(
        self, memory: Memory | None, *, targets: Sequence[str] = TARGETS, timeout_seconds: float = CALL_SECONDS
    ) -> None:
        self.targets = tuple(targets)
        self._memory = memory
        self._timeout_seconds = timeout_seconds

    def can_skip_at_build_time(self, build: Build) -> bool:
        return not is_enabled(build.settings_of(MODIFIER_ID))

    def build_hooks(self, build: Build) -> "MemoryHooks[ContextT]":
        """Raises ProviderSettingsInvalid for settings out of bounds."""
        settings = read_modifier_settings(build.settings_of(MODIFIER_ID))
        return MemoryHooks(self._memory, settings, self._timeout_seconds)


class MemoryHooks(Generic[ContextT]):
    """The memory steps of one pipeline, with the settings that it was built with."""

    steps: Sequence[StepDefinition] = STEPS

    def __init__(self, memory: Memory | None, settings: ModifierSettings, timeout_seconds: float) -> None:
        self.settings = settings
        self._memory = memory
        self._timeout_seconds = timeout_seconds
        self._has_warned = False

    def can_skip(self, _context: ContextT) -> bool:
        """For hosts that ask before each run."""
        return not self.settings.is_enabled

    async def execute(self, step_id: str, context: ContextT) -> ContextT:
        """Raises StepUnknown, and nothing else."""
        if step_id not in {step.id for step in self.steps}:
            raise StepUnknown(f"{MODIFIER_ID} has no step {step_id!r}" if step_id else f"{MODIFIER_ID}: no step named")
        if not self.settings.is_enabled:
            return context
        if self._memory is None:
            self._warn_once()
            return context
        trip = _Trip(self._memory, context, Guard(self._timeout_seconds))
        if step_id == FETCH_STEP_ID:
            await trip.open()
            await trip.fetch(self.settings)
            return context
        try:
            if self.settings.save_summary:
                await trip.save(build_success)
        finally:
            await trip.close()
        return context

    async def rollback(self, context: ContextT, error: BaseException) -> None:
        """Nothing where the fetch step never ran: then no session is open, and there is no run to tell of."""
        if not self.settings.is_enabled or self._memory is None or context.memory_state is None:
            return
        trip = _Trip(self._memory, context, Guard(self._timeout_seconds))

        def build(context: MemoryContext, session_id: str | None, masker: Masker, now: datetime) -> Observation:
            return build_failure(context, error, session_id, masker, now)

        try:
            if self.settings.save_summary:
                await trip.save(build)
        finally:
            await trip.close()

    def _warn_once(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            log.warning("%s is enabled, but the host gave it no memory: its steps do nothing", MODIFIER_ID)


BuildDigest = Callable[[MemoryContext, str | None, Masker, datetime], Observation]


class _Trip:
    """One step's calls to the memory, for one run."""

    def __init__(self, memory: Memory, context: MemoryContext, guard: Guard) -> None:
        self._memory = memory
        self._context = context
        self._guard = guard

    @property
    def session_id(self) -> str | None:
        state = self._context.memory_state
        return self._context.memory_session_id or (state.session_id if state else None)

    async def open(self) -> None:
        """Unless a session is there: the orchestrator's, or that of a fetch step which is repeated."""
        state = self._context.memory_state
        if state is not None and state.is_own:
            return
        self._context.memory_state = MemoryState()
        if self._context.memory_session_id is not None:
            return
        work = self._context.work
        opened = await self._guard.attempt(
            "openSession",
            Session,
            lambda: self._memory.open_session(project_id=work.project_id, metadata=self._session_metadata()),
        )
        if not isinstance(opened, Failed):
            self._context.memory_state = MemoryState(opened.id, is_own=True)

    async def fetch(self, settings: ModifierSettings) -> None:
        request = ContextRequest(
            self._context.prompt or None,
            settings.purpose,
            self.session_id,
            self._context.work.project_id,
            settings.context_tokens_max,
        )
        built = await self._guard.attempt("buildContext", Context, lambda: self._memory.build_context(request))
        if not isinstance(built, Failed) and built.content:
            self._context.memory_context = built

    async def save(self, build: BuildDigest) -> None:
        async def save() -> None:
            # Compiling the masking rules takes a moment that other tasks need not wait for.
            now = datetime.now(UTC)
            digest = await asyncio.to_thread(lambda: build(self._context, self.session_id, Masker(), now))
            await self._memory.save(digest)

        await self._guard.attempt("saveMemory", object, save)

    async def close(self) -> None:
        state = self._context.memory_state
        if state is None or not state.is_own or state.session_id is None:
            return
        session_id = state.session_id
        # Before the call: a last step that is repeated must not close twice.
        self._context.memory_state = MemoryState(session_id)
        await self._guard.attempt(
            "closeSession",
            object,
            lambda: self._memory.close_session(session_id, project_id=self._context.work.project_id),
        )

    def _session_metadata(self) -> Metadata:
        work = self._context.work
        named = {"projectId": work.project_id, "source": MODIFIER_ID, "workId": work.id, "workSlug": work.slug}
        return {name: value for name, value in named.items() if value is not None}
