"""What was recalled is written down behind the answers, and nothing of it is lost at a stop."""

import asyncio

from services.recall.journal import BACKLOG_MAX, BATCH_MAX, Journal
from services.recall.rules import ScopeName
from services.recall.store import RecallRecord


class Store:
    """Counts what it is given; the statement itself is tested on a real database."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    async def insert_records(self, records: list[RecallRecord]) -> None:
        self.batches.append(len(records))


class Relay:
    nudges = 0

    def nudge(self) -> None:
        self.nudges += 1


def record() -> RecallRecord:
    return RecallRecord(ScopeName("default", "swe-lessons", "a/b"), None, None, [], [], [])


async def test_a_stop_in_the_midst_of_a_batch_loses_nothing() -> None:
    store = Store()
    journal = Journal(store, Relay())
    task = asyncio.create_task(journal.run())
    journal.note(record())
    await asyncio.sleep(0)  # the task has seen the first record and waits for more
    journal.note(record())
    await journal.flush()
    task.cancel()
    assert store.batches == [2]


async def test_a_flush_writes_everything_in_batches() -> None:
    store = Store()
    journal = Journal(store, Relay())
    for _ in range(BATCH_MAX * 2 + 1):
        journal.note(record())
    await journal.flush()
    assert store.batches == [BATCH_MAX, BATCH_MAX, 1]


async def test_a_full_backlog_drops_what_comes_after() -> None:
    store = Store()
    journal = Journal(store, Relay())
    for _ in range(BACKLOG_MAX + 5):
        journal.note(record())
    await journal.flush()
    assert sum(store.batches) == BACKLOG_MAX
