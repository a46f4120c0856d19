"""How a modifier takes part in a pipeline: what the two say to each other (spec 3).

A modifier is asked once, when a pipeline is built, with its settings resolved. What it then gives, its hooks, keeps
them: the steps and the rollback of a run see the settings that the pipeline was built with, and none other.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar

from lorebus.sessions.errors import render_error
from lorebus.sessions.guard import Guard

ROLLBACK_SECONDS = 30.0
"""How long one modifier may take to note how a run ended."""

ContextT = TypeVar("ContextT")

log = logging.getLogger("lorebus")


@dataclass(frozen=True, slots=True)
class StepDefinition:
    """A step that a modifier adds. It runs alone, and its failure does not fail the pipeline."""

    id: str
    name: str
    position: Literal["first", "last"]
    provides: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Build:
    """One building of a pipeline, and what was resolved for it: settings by the modifier's id."""

    pipeline_id: str
    settings: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, Mapping[str, object]])

    def settings_of(self, modifier_id: str) -> Mapping[str, object]:
        return self.settings.get(modifier_id, {})


class PipelineHooks(Protocol[ContextT]):
    """A modifier within one pipeline."""

    @property
    def steps(self) -> Sequence[StepDefinition]: ...

    async def execute(self, step_id: str, context: ContextT) -> ContextT:
        """Raises for a step that it does not have."""
        ...

    async def rollback(self, context: ContextT, error: BaseException) -> None:
        """The run failed or was cancelled with this error."""
        ...


class PipelineModifier(Protocol[ContextT]):
    @property
    def id(self) -> str: ...

    @property
    def targets(self) -> Collection[str]:
        """The pipelines that it takes part in."""
        ...

    def can_skip_at_build_time(self, build: Build) -> bool:
        """Can the pipeline be built as if the modifier were not there?"""
        ...

    def build_hooks(self, build: Build) -> PipelineHooks[ContextT]: ...


def collect_hooks(modifiers: Sequence[PipelineModifier[ContextT]], build: Build) -> list[PipelineHooks[ContextT]]:
    """Of those that target the pipeline and cannot be left out: the others leave no trace in it."""
    return [
        modifier.build_hooks(build)
        for modifier in modifiers
        if build.pipeline_id in modifier.targets and not _can_skip(modifier, build)
    ]


def _can_skip(modifier: PipelineModifier[ContextT], build: Build) -> bool:
    try:
        return modifier.can_skip_at_build_time(build)
    except Exception as error:  # noqa: BLE001 - a modifier that cannot tell is kept: its steps look once more
        log.warning("%s: cannot tell whether it can be skipped: %s", modifier.id, render_error(error))
        return False


async def roll_back(hooks: Sequence[PipelineHooks[ContextT]], context: ContextT, error: BaseException) -> None:
    """Tells each of them; what goes wrong with one hides neither the error nor the others."""
    guard = Guard(ROLLBACK_SECONDS)
    for one in hooks:
        await guard.attempt("rollback", object, lambda one=one: one.rollback(context, error))
