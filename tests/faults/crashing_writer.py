"""The writer with a crash built in: `python crashing_writer.py POINT [MUTANT]` kills itself at that point.

Run as a process of its own by test_crash_points; a mutant breaks a promise on purpose, so that the test can show
that it would notice.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from faststream.message import StreamMessage
from lorebus.contracts.facts.fact import MemoryEvent

import services.writer.app
from libs.common.bus.consume import Consumer
from libs.common.inbox import Claim
from libs.common.run import serve
from services.writer.rows import Kept, NewLesson
from services.writer.service import WriterService
from services.writer.store import WriterStore


def crash() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class CrashBeforeCommit(WriterStore):
    async def insert_lesson(self, claim: Claim, new: NewLesson, facts: Sequence[MemoryEvent]) -> Kept:
        crash()
        return await super().insert_lesson(claim, new, facts)


class CrashAfterCommit(WriterStore):
    async def insert_lesson(self, claim: Claim, new: NewLesson, facts: Sequence[MemoryEvent]) -> Kept:
        kept = await super().insert_lesson(claim, new, facts)
        crash()
        return kept


class CrashAfterClaim(WriterService):
    async def write(self, run: Any, claim: Claim) -> None:
        crash()


class AckFirst(Consumer[Any]):
    """The mutant: what is acknowledged before it is stored is lost when the process dies in between."""

    async def receive(self, delivered: StreamMessage[Any]) -> None:
        await delivered.raw_message.ack_sync()
        await super().receive(delivered)


CRASHES = {
    "after_claim": ("WriterService", CrashAfterClaim),
    "before_commit": ("WriterStore", CrashBeforeCommit),
    "after_commit": ("WriterStore", CrashAfterCommit),
}
MUTANTS = {"ack_first": ("Consumer", AckFirst)}

if __name__ == "__main__":
    point, *mutants = sys.argv[1:]
    for name, part in (CRASHES[point], *(MUTANTS[mutant] for mutant in mutants)):
        setattr(services.writer.app, name, part)
    asyncio.run(serve([services.writer.app.PROGRAM]))
