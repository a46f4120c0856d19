"""The verdict on each text, with the CPU time of scanning and masking it at first sight."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from cli.evaluations.corpus import Row
from services.gate.scan import Scan

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

NOW = 0.0
"""No pattern leaves quarantine while an evaluation runs."""


class Track(Protocol):
    """Shows a person how far the work on these items is."""

    def __call__(self, items: Sequence[ItemT], words: str) -> Iterable[ItemT]: ...


@dataclass(frozen=True, slots=True)
class Gate:
    """What a text goes through before it is stored."""

    scanner: Callable[[str, float], Scan]
    mask: Callable[[str], str]

    def scan(self, text: str) -> Scan:
        return self.scanner(text, NOW)

    def pass_through(self, text: str) -> Scan:
        return self.scan(self.mask(text))

    def refuses(self, text: str) -> bool:
        return bool(self.scan(text).matched)


@dataclass(frozen=True, slots=True)
class Judged:
    row: Row
    matched: tuple[str, ...]
    watched: tuple[str, ...]
    is_complete: bool
    is_changed: bool
    scan_seconds: float
    mask_seconds: float

    @property
    def is_refused(self) -> bool:
        """An attack counts as found by what matched; a lesson is lost by an incomplete scan too."""
        return bool(self.matched) or not (self.is_complete or self.row.is_attack)

    @property
    def is_held(self) -> bool:
        """Not refused, yet watched: of a low tier it is recalled only once an administrator has released it."""
        return bool(self.watched) and not self.matched

    @property
    def seconds(self) -> float:
        return self.scan_seconds + self.mask_seconds


def judge(row: Row, gate: Gate) -> Judged:
    masked, mask_seconds = timed(gate.mask, row.text)
    scan, scan_seconds = timed(gate.scan, row.text)
    return Judged(row, scan.matched, scan.watched, scan.complete, masked != row.text, scan_seconds, mask_seconds)


def timed(work: Callable[[str], ResultT], text: str) -> tuple[ResultT, float]:
    """The result, and the CPU seconds of this thread: other work on the machine does not count."""
    started = time.thread_time()
    result = work(text)
    return result, time.thread_time() - started
