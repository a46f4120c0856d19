"""Threads that scan, so that the event loop keeps answering while they do.

One thread works; more would only fight for the interpreter, which the loop needs too. It takes one text of each
question in turn, so that a small question does not wait for the end of a large one. A scan cannot be interrupted: one
that does not come back is given up, its text counts as not scanned whole, and another thread takes the place of the
lost one. How many may be lost is bounded. Daemons, so that a lost thread cannot keep a process from ending.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue

import structlog
from lorebus.errors import LorebusError

from services.gate.scan import Scan

_log = structlog.get_logger("gate")

LOST_MAX = 4
TEXT_SECONDS_MAX = 1.5
"""A whole text takes milliseconds. Less than the two seconds that a writer waits, so that it hears of it."""

ScanText = Callable[[str, float], Scan]
"""A text and the time, in monotonic seconds."""


class CrewBusy(LorebusError):
    """No thread came to these texts in time: they were not judged at all."""


class ScanCrew:
    """A thread, and those that may take its place."""

    def __init__(self, *, lost_max: int = LOST_MAX, text_seconds_max: float = TEXT_SECONDS_MAX) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._lost = 0
        self._lost_max = lost_max
        self._text_seconds_max = text_seconds_max
        self._lock = threading.Lock()
        self._hire()

    async def scan_all(self, scan: ScanText, texts: Sequence[str]) -> list[Scan]:
        """In order. Raises CrewBusy when no thread was free in time, and what `scan` raises."""
        scans: list[Scan] = []
        while len(scans) < len(texts):
            job = _Job(scan, texts[len(scans) :])
            self._jobs.put(job)
            if await self._is_done(job):
                return scans + job.scans
            scans += [*job.scans, Scan(complete=False)]
        return scans

    async def close(self) -> None:
        """The thread ends when what is queued is scanned."""
        self._jobs.put(None)

    async def _is_done(self, job: "_Job") -> bool:
        """False when the text in work had to be given up."""
        answer = asyncio.wrap_future(job.answer)
        while not answer.done():
            moved_at = job.moved_at
            left_seconds = moved_at + self._text_seconds_max - time.monotonic()
            if left_seconds > 0:
                await asyncio.wait({answer}, timeout=left_seconds)
            elif self._give_up(job, moved_at):
                return False
            else:
                await asyncio.sleep(0)
        answer.result()
        return True

    def _give_up(self, job: "_Job", moved_at: float) -> bool:
        """False when it moved on after all. Raises CrewBusy where no thread had taken it up."""
        with self._lock:
            if job.answer.done() or job.moved_at != moved_at:
                return False
            job.is_given_up = True
            if not job.is_in_work:
                raise CrewBusy(f"no scan could begin for {self._text_seconds_max:g} seconds")
            job.is_replaced = self._lost < self._lost_max
            self._lost += job.is_replaced
        _log.error("gate.scan_stuck", lost_threads=self._lost, replaced=job.is_replaced)
        if job.is_replaced:
            self._hire()
        return True

    def _hire(self) -> None:
        threading.Thread(target=self._work, name="gate-scan", daemon=True).start()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            with self._lock:
                if not job.begin():
                    continue
            outcome = job.scan_next()
            with self._lock:
                if job.is_replaced:
                    self._lost -= 1
                    return
                if job.end(outcome):
                    self._jobs.put(job)


@dataclass
class _Job:
    """Texts of one question, as far as they are scanned. All but `scan_next` under the crew's lock."""

    scan: ScanText
    texts: Sequence[str]
    scans: list[Scan] = field(default_factory=list[Scan])
    moved_at: float = field(default_factory=time.monotonic)
    """When it was queued, or the scan of the text in work began."""
    is_in_work: bool = False
    is_given_up: bool = False
    is_replaced: bool = False
    """Another thread has taken the place of the one that is lost in it."""
    answer: "Future[None]" = field(default_factory=lambda: Future[None]())

    def begin(self) -> bool:
        """False when nobody waits for it any more."""
        if self.is_given_up or self.answer.cancelled():
            return False
        self.is_in_work, self.moved_at = True, time.monotonic()
        return True

    def scan_next(self) -> Scan | Exception:
        try:
            return self.scan(self.texts[len(self.scans)], self.moved_at)
        except Exception as error:  # noqa: BLE001 - raised where the question is answered; the thread goes on
            return error

    def end(self, outcome: Scan | Exception) -> bool:
        """Whether there is more to scan."""
        if self.is_given_up or not (self.answer.running() or self.answer.set_running_or_notify_cancel()):
            return False
        self.is_in_work, self.moved_at = False, time.monotonic()
        if isinstance(outcome, Exception):
            self.answer.set_exception(outcome)
            return False
        self.scans.append(outcome)
        if len(self.scans) == len(self.texts):
            self.answer.set_result(None)
            return False
        return True
