"""Forgetting while others are at work, with barriers in the place of luck: locks and gates that the test holds."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import nats
import pytest
import sqlalchemy as sa
from conftest import Installation, ci_run, run_services
from forgettable import ACTOR, active_ids, find, forget, ids_of, is_counted_right, merge, save, save_several
from lorebus import Lorebus
from lorebus.contracts.subjects import GATE_SCREEN
from nats.aio.msg import Msg
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.common.database import lock_scope
from libs.common.domain.memory import item_id_for
from libs.common.forgetting import Forgotten, Targets, forget_items, lock_targets
from libs.common.schema import memory_items, recall_log, scopes
from libs.common.settings import CommonSettings
from libs.common.tombstones import Work, bury, find_buried
from services.consolidator.app import PROGRAM as CONSOLIDATOR
from services.recall.app import PROGRAM as RECALL

LOG = "Error: Cannot find module 'left-pad-{n}'\nnpm ERR! code ELIFECYCLE\n"
WAITERS = sa.text("select count(*) from pg_locks where locktype = 'advisory' and not granted and objid = :objid")


@pytest.fixture(scope="module")
async def memory(servers: CommonSettings, installation: Installation) -> AsyncIterator[Installation]:
    async with run_services(servers, CONSOLIDATOR):
        yield installation


async def get_scope_id(memory: Installation, repository: str) -> int:
    [row] = await memory.rows(sa.select(scopes.c.id).filter_by(key=repository))
    return row["id"]


@asynccontextmanager
async def locked_scope(memory: Installation, scope_id: int) -> AsyncIterator[None]:
    """Whoever wants to change the scope waits until this ends."""
    async with memory.engine.begin() as connection:
        await lock_scope(connection, scope_id)
        yield


async def wait_for_waiters(memory: Installation, scope_id: int, count: int = 1) -> None:
    """Until so many stand before the scope's lock."""
    async with asyncio.timeout(20), memory.engine.connect() as connection:
        while await connection.scalar(WAITERS, {"objid": scope_id}) < count:  # noqa: ASYNC110 - locks tell nobody
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("named", ["by id", "by event"])
async def test_a_run_that_is_being_written_when_it_is_forgotten_ends_as_skipped(
    memory: Installation, repository: str, named: str
) -> None:
    await memory.publish(ci_run(repository, LOG.format(n=0)))
    scope_id, event_id = await get_scope_id(memory, repository), uuid4().hex
    item_id = item_id_for("default", event_id)
    async with locked_scope(memory, scope_id):
        await memory.memory.publish_run(ci_run(repository, LOG.format(n=1), event_id=event_id))
        await wait_for_waiters(memory, scope_id)
        targets = {"ids": [item_id]} if named == "by id" else {"event_ids": [event_id]}
        told = await forget(memory, **targets)
    event = await memory.end_of(event_id)
    assert (told["deleted"], event.status, event.reason, list(event.item_ids)) == ([], "skipped", "forgotten", [])
    assert await find(memory, item_id) == {}
    assert (await memory.facts("lesson_skipped", event_id=event_id))["reason"] == "forgotten"
    assert await is_counted_right(memory, repository)


async def test_a_note_that_is_being_saved_when_it_is_forgotten_says_so(memory: Installation, repository: str) -> None:
    await save(memory, repository, "The parser needs a flag.")
    scope_id, event_id = await get_scope_id(memory, repository), uuid4().hex
    async with locked_scope(memory, scope_id):
        note = {"repository": repository, "writer": "shellStep", "summary": "Install it first.", "event_id": event_id}
        saving = asyncio.create_task(memory.memory.save_note(**note, deadline_seconds=15))
        await wait_for_waiters(memory, scope_id)
        await forget(memory, event_ids=[event_id])
    reply = await saving
    assert (reply.id, reply.error) == (None, "forgotten")


async def test_what_is_stored_first_is_found_by_the_delete_that_waits(memory: Installation, repository: str) -> None:
    """The delete asks for ids that nobody has stored yet; it waits for the writer that holds the tombstones' lock."""
    await memory.publish(ci_run(repository, LOG.format(n=0)))
    scope_id, item_id = await get_scope_id(memory, repository), uuid4()
    async with memory.engine.begin() as writing:
        await lock_scope(writing, scope_id)
        assert await find_buried(writing, Work("default", items=[item_id])) == []
        published = await memory.memory.forget(ids=[item_id], actor=ACTOR)
        await wait_for_tombstones_lock(memory)
        original = (await writing.execute(sa.select(memory_items).filter_by(scope_id=scope_id))).mappings().one()
        row = dict(original) | {"id": item_id, "source_event_id": uuid4().hex, "consolidated_at": datetime.now(UTC)}
        await writing.execute(sa.insert(memory_items).values(row))
    # It came up in a scope that the delete had not locked, so the delete begins anew.
    told = await memory.facts("deleted", seconds=30, event_id=published.event_id)
    assert (ids_of(told, "deleted"), await find(memory, item_id)) == ([item_id], {})


async def wait_for_tombstones_lock(memory: Installation) -> None:
    query = sa.text("select count(*) from pg_locks where locktype = 'advisory' and not granted and classid = 19523")
    async with asyncio.timeout(20), memory.engine.connect() as connection:
        while not await connection.scalar(query):  # noqa: ASYNC110 - locks tell nobody
            await asyncio.sleep(0.02)


async def delete(memory: Installation, *ids: UUID) -> Forgotten:
    """As a copy of the consolidator's of its own does."""

    async def find_targets(_connection: AsyncConnection) -> list[UUID]:
        return list(ids)

    async with memory.engine.begin() as connection:
        targets = await lock_targets(connection, "default", find_targets)
        return await forget_items(connection, "default", Targets(targets))


async def test_two_deletes_of_one_merge_at_once_take_all_of_it_and_restore_nothing_twice(
    memory: Installation, repository: str
) -> None:
    first, second, third = await save_several(memory, repository, 3)
    merged = await merge(memory, first, second, third)
    scope_id = await get_scope_id(memory, repository)
    async with locked_scope(memory, scope_id):
        deletes = [asyncio.create_task(delete(memory, id_)) for id_ in (first, second)]
        await wait_for_waiters(memory, scope_id, 2)
    deleted = [id_ for forgotten in await asyncio.gather(*deletes) for id_ in forgotten.deleted]
    assert sorted(deleted) == sorted([first, second, merged])
    assert await active_ids(memory, repository) == {third}
    assert await is_counted_right(memory, repository)


async def test_deletes_over_the_same_scopes_in_different_order_do_not_lock_each_other_out(
    memory: Installation, repository: str
) -> None:
    names = [f"{repository}-a", f"{repository}-b"]
    (first, second), (third, fourth) = [await save_several(memory, name, 2) for name in names]
    scope_id = await get_scope_id(memory, names[0])
    async with locked_scope(memory, scope_id):
        deletes = [asyncio.create_task(delete(memory, *pair)) for pair in ((first, third), (fourth, second))]
        await wait_for_waiters(memory, scope_id, 2)
    assert [forgotten.deleted for forgotten in await asyncio.gather(*deletes)] == [[first, third], [fourth, second]]


@dataclass
class HeldGate:
    """A gate that answers about texts once it is told to."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, message: Msg) -> None:
        texts = json.loads(message.data)["texts"]
        if texts:
            self.asked.set()
            await self.go_on.wait()
        verdicts = [{"id": text["id"], "verdict": "clean", "patterns": []} for text in texts]
        reply: dict[str, Any] = {"status": "ok", "pattern_set": "held", "verdicts": verdicts}
        await message.respond(json.dumps(reply).encode())


async def test_a_recall_in_the_middle_of_a_delete_ends_whole_and_the_next_one_finds_nothing(
    memory: Installation, other_bus: CommonSettings, repository: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOREBUS_RECALL_GATE_TIMEOUT_SECONDS", "20")
    text, gate = "The parser needs the flag of the compiler.", HeldGate()
    item_id = await save(memory, repository, text)
    stub = await nats.connect(other_bus.nats_url)
    subscriptions = [await stub.subscribe(GATE_SCREEN, cb=gate.answer)]
    async with run_services(other_bus, RECALL) as other, Lorebus(other_bus.nats_url) as asking:
        question = asyncio.create_task(
            asking.recall(text, repository=repository, similarity_min=0, deadline_seconds=30)
        )
        await gate.asked.wait()
        await forget(memory, ids=[item_id])
        gate.go_on.set()
        begun_before = await question
        after = await other.recall(repository, text, similarity_min=0)
        explained = await other.memory.explain(str(item_id), deadline_seconds=5)
        rows = await other.until(sa.select(recall_log).filter_by(scope_key=repository))
    for subscription in subscriptions:
        await subscription.unsubscribe()
    await stub.close()
    assert not begun_before.degraded
    assert (after.items, after.degraded, explained.lesson) == ([], False, None)
    assert text not in str(rows)


async def test_no_recall_returns_it_once_the_delete_is_told(memory: Installation, repository: str) -> None:
    text = "The parser needs the flag of the linker."
    item_id = await save(memory, repository, text)
    is_told = asyncio.Event()

    async def recall_until_told() -> list[tuple[bool, list[str]]]:
        answers: list[tuple[bool, list[str]]] = []
        while not (was_told := is_told.is_set()) or len(answers) < 20:
            reply = await memory.recall(repository, text, similarity_min=0)
            answers.append((was_told, [item.id for item in reply.items]))
            if was_told and answers[-3:].count((True, [])) == 3:
                break
        return answers

    recalling = asyncio.create_task(recall_until_told())
    await forget(memory, ids=[item_id])
    is_told.set()
    answers = await recalling
    assert [ids for was_told, ids in answers if was_told and ids] == []


async def test_a_person_stays_buried_for_what_was_said_before_and_is_heard_afterwards(memory: Installation) -> None:
    person, now = f"U{uuid4().hex}", datetime.now(UTC)
    async with memory.engine.begin() as connection:
        await bury(connection, "default", {"person": [person]}, now)
        before = await find_buried(connection, Work("default", persons=[person], told_at=now - timedelta(minutes=1)))
        after = await find_buried(connection, Work("default", persons=[person], told_at=now + timedelta(minutes=1)))
        whenever = await find_buried(connection, Work("default", persons=[person]))
        elsewhere = await find_buried(connection, Work("acme", persons=[person]))
    assert (before, after, whenever, elsewhere) == ([("person", person)], [], [("person", person)], [])


async def test_an_event_stays_buried_whenever_it_comes(memory: Installation) -> None:
    key, now = uuid4().hex, datetime.now(UTC)
    async with memory.engine.begin() as connection:
        await bury(connection, "default", {"event": [key]}, now)
        found = await find_buried(connection, Work("default", events=[key], told_at=now + timedelta(days=400)))
    assert found == [("event", key)]
