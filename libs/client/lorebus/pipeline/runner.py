"""A pipeline of plain async functions: one after the other, with what modifiers add to it."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from lorebus.pipeline.hooks import PipelineHooks, roll_back
from lorebus.sessions.errors import render_error

ContextT = TypeVar("ContextT")

log = logging.getLogger("lorebus")


@dataclass(frozen=True, slots=True)
class Step(Generic[ContextT]):
    """`run` takes the context and may give another in its place."""

    id: str
    run: Callable[[ContextT], Awaitable[ContextT | None]]
    is_optional: bool = False


class Pipeline(Generic[ContextT]):
    def __init__(self, steps: Sequence[Step[ContextT]], hooks: Sequence[PipelineHooks[ContextT]] = ()) -> None:
        self.steps = plan(steps, hooks)
        self._hooks = tuple(hooks)

    async def run(self, context: ContextT) -> ContextT:
        """The context at the end. What a step raises, and a cancellation, passes on once each modifier knows of it."""
        try:
            for step in self.steps:
                context = await _run_step(step, context)
        except BaseException as error:
            await roll_back(self._hooks, context, error)
            raise
        return context


def plan(steps: Sequence[Step[ContextT]], hooks: Sequence[PipelineHooks[ContextT]]) -> list[Step[ContextT]]:
    """The steps in their order: first those that want to be first, last those that want to be last."""
    added = [(definition, one) for one in hooks for definition in one.steps]

    def placed(position: str) -> list[Step[ContextT]]:
        return [
            Step(definition.id, partial(one.execute, definition.id), is_optional=True)
            for definition, one in added
            if definition.position == position
        ]

    return [*placed("first"), *steps, *placed("last")]


async def _run_step(step: Step[ContextT], context: ContextT) -> ContextT:
    try:
        made = await step.run(context)
    except Exception as error:
        if not step.is_optional:
            raise
        log.warning("the optional step %s failed: %s", step.id, render_error(error))
        return context
    return context if made is None else made
