"""How often and when a failed call is made again: more tries after growing, random waits (full jitter)."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import structlog

from libs.common.errors import ModelUnavailable

ResultT = TypeVar("ResultT")

_log = structlog.get_logger("language_model")

RETRY_AFTER_SECONDS_MAX = 20.0
"""A provider that asks for more is left alone; the event comes again later."""


class CallFailed(Exception):
    """One call that may go well when it is made again."""

    def __init__(self, text: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(text)
        self.retry_after_seconds = retry_after_seconds


@dataclass(frozen=True, slots=True)
class Retrying:
    tries: int = 3
    wait_seconds: float = 2.0
    """Bound of the first wait; each further one may be twice as long."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def call(self, call: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """The first result. Raises ModelUnavailable after the last try, or where the provider asks for a long wait."""
        for number in range(1, self.tries + 1):
            try:
                return await call()
            except CallFailed as error:
                wait_seconds = self._find_wait(error, number)
                if wait_seconds is None:
                    raise ModelUnavailable(str(error)) from None
                _log.warning("language_model.call_failed", error=str(error), tries=number, wait_seconds=wait_seconds)
            await self.sleep(wait_seconds)
        raise AssertionError("the last try returns or raises")

    def _find_wait(self, error: CallFailed, number: int) -> float | None:
        if number == self.tries or (error.retry_after_seconds or 0) > RETRY_AFTER_SECONDS_MAX:
            return None
        if error.retry_after_seconds is not None:
            return error.retry_after_seconds
        return random.uniform(0, self.wait_seconds * 2 ** (number - 1))  # noqa: S311 - spreads load, hides nothing
