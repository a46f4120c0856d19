"""When the schedule merges: each slot once, whatever the number of copies, and a missed one once."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from conftest import Installation, run_services
from mergeable import UPLOAD, items_of, merged_of, new_id, save

from libs.common.administered_settings import AdministeredSettings
from libs.common.bus.connection import connect, create_broker
from libs.common.bus.relay import Relay
from libs.common.database import create_engine
from libs.common.domain.setting_cascade import Place
from libs.common.domain.setting_keys import CONSOLIDATION_CRON, CONSOLIDATION_ENABLED
from libs.common.schema import audit, consolidation_schedules, inbox, outbox, scopes
from libs.common.settings import CommonSettings
from services.consolidator.app import PROGRAM as CONSOLIDATOR
from services.consolidator.scheduling import Scheduling
from services.consolidator.slots import RepositoryUnknown, set_enabled
from services.gate.app import PROGRAM as GATE
from services.writer.app import PROGRAM as WRITER

SUNDAY = datetime(2030, 6, 2, 3, 0, tzinfo=UTC)
"""A slot of the default line, long after everything that a test writes."""


@dataclass
class Copies:
    """Schedules of several services over one database of their own, in which no relay runs."""

    installation: Installation
    copies: list[Scheduling]

    async def fire(self, now: datetime) -> int:
        """All copies at once."""
        return sum(await asyncio.gather(*(copy.fire(now) for copy in self.copies)))

    async def requests(self) -> list[dict[str, Any]]:
        query = sa.select(outbox.c.payload).where(outbox.c.subject == "consolidation.requested").order_by(outbox.c.id)
        return [row["payload"] for row in await self.installation.rows(query)]

    async def add(self, repository: str, **fields: Any) -> None:
        row = {"tenant": "default", "kind": "swe-lessons", "key": repository, "items_active": 3}
        row |= {"created_at": SUNDAY - timedelta(days=30), **fields}
        async with self.installation.engine.begin() as connection:
            await connection.execute(sa.insert(scopes).values(row))


@pytest.fixture
async def schedule(apart: CommonSettings) -> AsyncIterator[Copies]:
    engines = [create_engine(apart.database_url, "tests") for _ in range(3)]
    broker = create_broker(apart.nats_url, "tests")
    client = await connect(broker, apart.nats_url)
    copies = [Scheduling(engine, AdministeredSettings(engine, 0.0), Relay(engine, client), 1.0) for engine in engines]
    installation = Installation(apart, None, engines[0])  # pyright: ignore[reportArgumentType]
    yield Copies(installation, copies)
    await broker.stop()
    for engine in engines:
        await engine.dispose()


async def test_several_copies_fire_a_slot_once_for_each_repository(schedule: Copies, repository: str) -> None:
    await schedule.add(repository)
    await schedule.add(f"{repository}-2")
    fired = [await schedule.fire(SUNDAY + timedelta(minutes=minutes)) for minutes in (0, 1, 2)]
    requests = await schedule.requests()
    assert fired == [2, 0, 0]
    assert {request["repository"] for request in requests} == {repository, f"{repository}-2"}
    assert {request["actor"] for request in requests} == {"schedule"}


async def test_copies_that_take_one_slot_at_the_same_moment_fire_it_once(schedule: Copies, repository: str) -> None:
    await schedule.add(repository)
    scope = sa.select(scopes.c.id, sa.literal("0 3 * * 0"), sa.literal(SUNDAY - timedelta(days=7)))
    blocked = sa.text("select count(*) as n from pg_stat_activity where wait_event_type = 'Lock' having count(*) >= 3")
    async with schedule.installation.engine.connect() as connection:
        # Somebody else's row of the same key, which all copies have to wait for.
        row = sa.insert(consolidation_schedules).from_select(["scope_id", "cron", "slot_at"], scope)
        await connection.execute(row)
        copies = asyncio.create_task(schedule.fire(SUNDAY))
        await schedule.installation.until(blocked)  # pyright: ignore[reportArgumentType]
        await connection.rollback()
    assert await copies == 1
    assert len(await schedule.requests()) == 1


async def test_a_slot_that_passed_while_nobody_ran_fires_once(schedule: Copies, repository: str) -> None:
    await schedule.add(repository)
    await schedule.fire(SUNDAY)
    assert await schedule.fire(SUNDAY + timedelta(days=23)) == 1, "of three missed slots one"
    assert await schedule.fire(SUNDAY + timedelta(days=23, minutes=1)) == 0


async def test_a_repository_younger_than_the_slot_waits_for_the_next(schedule: Copies, repository: str) -> None:
    await schedule.add(repository, created_at=SUNDAY + timedelta(hours=1))
    assert await schedule.fire(SUNDAY + timedelta(hours=2)) == 0
    assert await schedule.fire(SUNDAY + timedelta(days=7)) == 1


async def test_another_line_fires_no_slot_of_the_time_before(schedule: Copies, repository: str) -> None:
    await schedule.add(repository)
    await schedule.fire(SUNDAY)
    settings = AdministeredSettings(schedule.installation.engine)
    await settings.set(CONSOLIDATION_CRON.name, "0 4 * * *", tenant="default", actor="test")
    assert await schedule.fire(SUNDAY + timedelta(hours=9)) == 0
    assert await schedule.fire(SUNDAY + timedelta(days=1, hours=1)) == 1


async def test_what_is_switched_off_is_left_out_and_its_slots_are_not_made_up_for(
    schedule: Copies, repository: str
) -> None:
    engine = schedule.installation.engine
    await schedule.add(repository)
    await set_enabled(engine, "default", repository, is_enabled=False, actor="test")
    assert await schedule.fire(SUNDAY) == 0
    await set_enabled(engine, "default", repository, is_enabled=True, actor="test")
    assert await schedule.fire(SUNDAY + timedelta(hours=1)) == 0
    assert await schedule.fire(SUNDAY + timedelta(days=7)) == 1
    entries = await schedule.installation.rows(sa.select(audit.c.after).filter_by(entity_id=repository).order_by("id"))
    assert [entry["after"] for entry in entries] == [{"is_enabled": False}, {"is_enabled": True}]


async def test_an_owner_can_switch_all_repositories_off(schedule: Copies, repository: str) -> None:
    await schedule.add(repository, team_id="T")
    settings = AdministeredSettings(schedule.installation.engine)
    await settings.set(CONSOLIDATION_ENABLED.name, False, tenant="default", actor="test", place=Place("team", "T"))
    assert await schedule.fire(SUNDAY) == 0


async def test_a_repository_with_too_little_to_merge_is_not_asked_for(schedule: Copies, repository: str) -> None:
    await schedule.add(repository, items_active=2)
    assert await schedule.fire(SUNDAY) == 0


async def test_an_unknown_repository_cannot_be_switched(schedule: Copies) -> None:
    with pytest.raises(RepositoryUnknown, match="nothing was written"):
        await set_enabled(schedule.installation.engine, "default", "no/where", is_enabled=False, actor="test")


async def test_a_running_service_merges_at_its_slot(apart: CommonSettings, repository: str) -> None:
    async with run_services(apart, GATE, WRITER) as memory:
        ids = await save(memory, repository, UPLOAD)
        async with memory.engine.begin() as connection:
            # As if everything had been written before the last slot.
            long_ago = sa.func.now() - timedelta(days=30)
            await connection.execute(sa.update(scopes).filter_by(key=repository).values(created_at=long_ago))
        async with run_services(apart, CONSOLIDATOR):
            fact = await memory.facts("lessons_consolidated", seconds=20, repository=repository)
        rows = await items_of(memory, repository)
        [row] = await memory.rows(sa.select(inbox.c.status).filter_by(event_id=fact["event_id"]))
    assert (fact["lessons_consolidated"], row["status"]) == (3, "written")
    assert fact["event_id"].startswith("schedule:")
    assert all(rows[id_]["consolidated_at"] for id_ in ids)


async def test_a_request_for_all_becomes_one_for_each_repository(apart: CommonSettings, repository: str) -> None:
    async with run_services(apart, GATE, WRITER, CONSOLIDATOR) as memory:
        others = [repository, f"{repository}-2"]
        for name in others:
            await save(memory, name, UPLOAD)
        await save(memory, f"{repository}-off", UPLOAD)
        await set_enabled(memory.engine, "default", f"{repository}-off", is_enabled=False, actor="test")
        published = await memory.memory.request_consolidation(event_id=new_id())
        dispatched = await memory.facts("consolidation_dispatched", seconds=20, event_id=published.event_id)
        facts = [await memory.facts("lessons_consolidated", seconds=20, event_id=job) for job in dispatched["jobs"]]
        merged = [await merged_of(memory, name) for name in others]
    assert sorted(fact["repository"] for fact in facts) == sorted(others)
    assert [len(rows) for rows in merged] == [1, 1]
