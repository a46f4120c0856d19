"""What administrators set, on a real database: read once, kept for a while, changed with an audit."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa
from conftest import LOG_FILE
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine

from libs.common.administered_settings import RETRY_SECONDS, AdministeredSettings
from libs.common.database import create_engine
from libs.common.domain.setting_cascade import Owner, Place
from libs.common.domain.setting_keys import LESSON_MAX_AGE_DAYS, LESSON_RETRIEVAL_LIMIT, TRANSCRIPT_CAPTURE_ENABLED
from libs.common.errors import SettingRefused, StoreUnavailable
from libs.common.provision import provision
from libs.common.schema import audit, settings
from libs.common.settings import CommonSettings

NAME = LESSON_MAX_AGE_DAYS.name
PAYMENTS = Place("team", "payments")


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def engine(servers: CommonSettings) -> AsyncIterator[AsyncEngine]:
    engine = create_engine(servers.database_url, "tests")
    yield engine
    await engine.dispose()


@pytest.fixture
async def scratch(other_bus: CommonSettings, empty_database: str) -> AsyncIterator[AsyncEngine]:
    """A database of its own, whose tables a test may take away."""
    await provision(other_bus.model_copy(update={"database_url": empty_database}))
    engine = create_engine(empty_database, "tests")
    yield engine
    await engine.dispose()


@pytest.fixture
def tenant() -> str:
    return f"t-{uuid4().hex[:12]}"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def looks(engine: AsyncEngine) -> list[str]:
    """The statements that read the table."""
    seen: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if statement.startswith("SELECT") and "settings" in statement:
            seen.append(statement)

    event.listen(engine.sync_engine, "before_cursor_execute", note)
    return seen


async def put_row(engine: AsyncEngine, tenant: str, value: object, level: str = "platform", name: str = "") -> None:
    """Past every check, as another version or a hand may write it."""
    row = {"tenant": tenant, "key": NAME, "scope_kind": level, "scope_key": name, "value": value}
    async with engine.begin() as connection:
        await connection.execute(sa.insert(settings).values(row))


async def test_a_value_that_was_set_is_in_force_for_its_tenant_alone(engine: AsyncEngine, tenant: str) -> None:
    await AdministeredSettings(engine).set(NAME, 30, tenant=tenant, actor="me")
    reader = AdministeredSettings(engine)
    assert await reader.get(LESSON_MAX_AGE_DAYS, tenant) == 30
    assert await reader.get(LESSON_MAX_AGE_DAYS, f"{tenant}-other") == 0


async def test_a_teams_value_is_in_force_for_the_team_alone(engine: AsyncEngine, tenant: str) -> None:
    store = AdministeredSettings(engine)
    await store.set(NAME, 90, tenant=tenant, actor="me")
    await store.set(NAME, 30, tenant=tenant, actor="me", place=PAYMENTS)
    found = [await store.get(LESSON_MAX_AGE_DAYS, tenant, Owner(team=team)) for team in ("payments", "search", None)]
    assert found == [30, 90, 90]


async def test_setting_again_replaces_and_unsetting_brings_the_next_level_back(
    engine: AsyncEngine, tenant: str
) -> None:
    store = AdministeredSettings(engine)
    await store.set(TRANSCRIPT_CAPTURE_ENABLED.name, True, tenant=tenant, actor="me")
    await store.set(TRANSCRIPT_CAPTURE_ENABLED.name, False, tenant=tenant, actor="me")
    assert await store.get(TRANSCRIPT_CAPTURE_ENABLED, tenant) is False
    assert await store.unset(TRANSCRIPT_CAPTURE_ENABLED.name, tenant=tenant, actor="me")
    assert await store.get(TRANSCRIPT_CAPTURE_ENABLED, tenant) is True


async def test_each_change_is_audited_with_who_and_what_was_before(engine: AsyncEngine, tenant: str) -> None:
    store = AdministeredSettings(engine)
    await store.set(NAME, 90, tenant=tenant, actor="ann", place=PAYMENTS)
    await store.set(NAME, 0, tenant=tenant, actor="bob", place=PAYMENTS)
    await store.unset(NAME, tenant=tenant, actor="cid", place=PAYMENTS)
    query = sa.select(audit).where(audit.c.tenant == tenant).order_by(audit.c.id)
    async with engine.connect() as connection:
        rows = (await connection.execute(query)).all()
    assert [(row.actor, row.action, row.before, row.after) for row in rows] == [
        ("ann", "setting.set", None, {"value": 90}),
        ("bob", "setting.set", {"value": 90}, {"value": 0}),
        ("cid", "setting.unset", {"value": 0}, None),
    ]
    assert {(row.entity_kind, row.entity_id) for row in rows} == {("setting", f"{NAME} team payments")}


async def test_unsetting_what_is_not_set_changes_and_audits_nothing(engine: AsyncEngine, tenant: str) -> None:
    assert not await AdministeredSettings(engine).unset(NAME, tenant=tenant, actor="me")
    async with engine.connect() as connection:
        assert await connection.scalar(sa.select(sa.func.count()).where(audit.c.tenant == tenant)) == 0


async def test_changes_at_once_are_audited_one_after_the_other(engine: AsyncEngine, tenant: str) -> None:
    store = AdministeredSettings(engine)
    await asyncio.gather(*(store.set(NAME, days, tenant=tenant, actor="me") for days in range(1, 7)))
    query = sa.select(audit.c.before, audit.c.after).where(audit.c.tenant == tenant).order_by(audit.c.id)
    async with engine.connect() as connection:
        rows = (await connection.execute(query)).all()
    assert len(rows) == 6
    assert [row.before for row in rows] == [None, *(row.after for row in rows[:-1])]


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [("memory.lessonMaxAge", 3, Place()), (NAME, -3, Place()), (NAME, 3, Place("channel", "C1"))],
    ids=["unknown", "out of range", "not at this level"],
)
async def test_what_cannot_be_set_is_refused_and_nothing_is_stored(
    engine: AsyncEngine, tenant: str, name: str, value: object, place: Place
) -> None:
    with pytest.raises(SettingRefused):
        await AdministeredSettings(engine).set(name, value, tenant=tenant, actor="me", place=place)
    async with engine.connect() as connection:
        assert await connection.scalar(sa.select(sa.func.count()).where(settings.c.tenant == tenant)) == 0


async def test_within_the_cache_time_nothing_is_read_again(
    engine: AsyncEngine, tenant: str, clock: Clock, looks: list[str]
) -> None:
    store = AdministeredSettings(engine, 30, clock=clock)
    assert await store.get(LESSON_MAX_AGE_DAYS, tenant) == 0
    await put_row(engine, tenant, 30)
    clock.now += 29.9
    assert await store.get(LESSON_MAX_AGE_DAYS, tenant) == 0
    assert len(looks) == 1
    clock.now += 0.1
    assert await store.get(LESSON_MAX_AGE_DAYS, tenant) == 30
    assert len(looks) == 2


async def test_all_keys_of_a_tenant_come_in_one_look_however_many_ask(
    engine: AsyncEngine, tenant: str, looks: list[str]
) -> None:
    store = AdministeredSettings(engine)
    keys = [LESSON_MAX_AGE_DAYS, LESSON_RETRIEVAL_LIMIT] * 20
    await asyncio.gather(*(store.get(key, tenant) for key in keys))
    assert len(looks) == 1


async def test_a_caller_that_gives_up_takes_the_look_from_no_other(
    engine: AsyncEngine, tenant: str, looks: list[str]
) -> None:
    store = AdministeredSettings(engine)
    first, second = [asyncio.create_task(store.get(LESSON_MAX_AGE_DAYS, tenant)) for _ in range(2)]
    await asyncio.sleep(0)  # both wait by now
    first.cancel()
    assert await second == 0
    assert len(looks) == 1


async def test_a_stored_value_that_is_invalid_falls_to_the_next_and_is_logged_once_without_it(
    engine: AsyncEngine, tenant: str, open_folder: Path
) -> None:
    await put_row(engine, tenant, 40)
    await put_row(engine, tenant, "a text that must not be logged", "team", "payments")
    store = AdministeredSettings(engine, 0)
    for _ in range(3):
        assert await store.get(LESSON_MAX_AGE_DAYS, tenant, Owner(team="payments")) == 40
    lines = [line for line in (open_folder / LOG_FILE).read_text().splitlines() if tenant in line]
    logged = [json.loads(line) for line in lines]
    assert [(line["event"], line["key"], line["set_at"]) for line in logged] == [
        ("settings.value_ignored", NAME, "team")
    ]
    assert "must not be logged" not in lines[0]


async def test_settings_that_were_never_read_are_an_outage_and_not_asked_for_at_once_again(
    scratch: AsyncEngine, clock: Clock
) -> None:
    await rename(scratch, "settings", "settings_away")
    store = AdministeredSettings(scratch, clock=clock)
    with pytest.raises(StoreUnavailable):
        await store.get(LESSON_MAX_AGE_DAYS, "default")
    await rename(scratch, "settings_away", "settings")
    clock.now += RETRY_SECONDS - 0.1
    with pytest.raises(StoreUnavailable):
        await store.get(LESSON_MAX_AGE_DAYS, "default")
    clock.now += 0.1
    assert await store.get(LESSON_MAX_AGE_DAYS, "default") == 0


async def test_what_was_read_last_stays_in_force_while_the_settings_cannot_be_read(
    scratch: AsyncEngine, clock: Clock
) -> None:
    store = AdministeredSettings(scratch, 30, clock=clock)
    await store.set(NAME, 30, tenant="default", actor="me")
    assert await store.get(LESSON_MAX_AGE_DAYS, "default") == 30
    await rename(scratch, "settings", "settings_away")
    clock.now += 3_600
    assert await store.get(LESSON_MAX_AGE_DAYS, "default") == 30


async def test_a_table_that_hangs_costs_a_bounded_time(scratch: AsyncEngine) -> None:
    store = AdministeredSettings(scratch, timeout_seconds=0.05)
    async with scratch.begin() as connection:
        await connection.execute(sa.text("lock table settings in access exclusive mode"))
        with pytest.raises(StoreUnavailable):
            await store.get(LESSON_MAX_AGE_DAYS, "default")


async def test_a_change_without_a_table_says_what_to_run(scratch: AsyncEngine) -> None:
    await rename(scratch, "settings", "settings_away")
    with pytest.raises(StoreUnavailable, match="lorebus migrate"):
        await AdministeredSettings(scratch).set(NAME, 30, tenant="default", actor="me")


async def rename(engine: AsyncEngine, old: str, new: str) -> None:
    async with engine.begin() as connection:
        await connection.execute(sa.text(f"alter table {old} rename to {new}"))
