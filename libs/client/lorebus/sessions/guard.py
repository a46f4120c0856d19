"""Calls that must not fail or hold up their host for its memory's sake.

Each has a bound of time, and what goes wrong is an answer, not an exception. It is logged once: a backend that is down
for a whole run says so in one line, not in one a call. Only the host's own cancellation passes through.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from lorebus.sessions.errors import AnswerUnreadable, BackendTimedOut, NoProvider, render_error

T = TypeVar("T")

CALL_SECONDS = 10.0

log = logging.getLogger("lorebus")


@dataclass(frozen=True, slots=True)
class Failed:
    """In the place of a result."""

    error: BaseException

    @property
    def is_without_provider(self) -> bool:
        return isinstance(self.error, NoProvider)


class Guard:
    def __init__(self, timeout_seconds: float = CALL_SECONDS) -> None:
        self.timeout_seconds = timeout_seconds
        self._told: set[tuple[str, str]] = set()

    async def attempt(self, name: str, kind: type[T], work: Callable[[], Awaitable[T]]) -> T | Failed:
        """The result, which is of this kind, or why there is none."""

        async def call() -> T:
            result = await work()
            # A provider without types may give anything, over which the host would stumble later.
            if not isinstance(result, kind):
                raise AnswerUnreadable(f"the provider gave a {type(result).__name__} for a {kind.__name__}")
            return result

        task = asyncio.create_task(call(), name=f"lorebus {name}")
        task.add_done_callback(_take_error)
        try:
            # Not asyncio.timeout: it would wait for a provider that takes no cancellation.
            await asyncio.wait({task}, timeout=self.timeout_seconds)
        finally:
            task.cancel()
        if not task.done():
            return self._fail(name, BackendTimedOut(self.timeout_seconds))
        if task.cancelled():
            return self._fail(name, asyncio.CancelledError())
        error = task.exception()
        return task.result() if error is None else self._fail(name, error)

    def _fail(self, name: str, error: BaseException) -> Failed:
        said = render_error(error)
        if (name, said) not in self._told:
            self._told.add((name, said))
            # To have no provider is a choice, not a fault.
            log.log(logging.DEBUG if isinstance(error, NoProvider) else logging.WARNING, "memory, %s: %s", name, said)
        return Failed(error)


def _take_error(task: asyncio.Task[object]) -> None:
    """The loop complains of errors that nobody took, such as those of a call that was given up."""
    if not task.cancelled():
        task.exception()
