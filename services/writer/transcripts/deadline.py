"""The time a digest has. It is checked between parts, chunks and records, so that no work runs on unseen."""

from collections.abc import Callable
from dataclasses import dataclass

from lorebus.errors import LorebusError


class DigestTimedOut(LorebusError):
    """The digest was not ready in time."""


@dataclass(frozen=True, slots=True)
class Deadline:
    clock: Callable[[], float]
    end: float
    """On that clock, in seconds."""

    def check(self) -> None:
        if self.clock() >= self.end:
            raise DigestTimedOut("the digest was not ready in time")
