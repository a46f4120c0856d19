"""Lessons age, and are fresh again when another run learns the same."""

from uuid import UUID

import pytest
import sqlalchemy as sa
from conftest import Installation, ci_run
from lorebus import Lorebus

from libs.common.administered_settings import AdministeredSettings
from libs.common.domain.setting_keys import LESSON_MAX_AGE_DAYS
from libs.common.schema import memory_items, memory_vectors

LOG = "Error: cannot find module zebra-crossing\nmake: *** [build] Error 2\n"
QUESTION = "cannot find module zebra-crossing"
TENANT = "ageing"


@pytest.fixture
async def forgetful(installation: Installation) -> Installation:
    """In this tenant lessons older than two days are not recalled."""
    administered = AdministeredSettings(installation.engine)
    await administered.set(LESSON_MAX_AGE_DAYS.name, 2, tenant=TENANT, actor="tests")
    return installation


async def age(installation: Installation, item_id: UUID, days: int) -> None:
    stamp = {"created_at": sa.func.now() - sa.text(f"interval '{days} days'")}
    async with installation.engine.begin() as connection:
        await connection.execute(sa.update(memory_items).where(memory_items.c.id == item_id).values(stamp))
        await connection.execute(sa.update(memory_vectors).where(memory_vectors.c.item_id == item_id).values(stamp))


async def test_an_aged_lesson_that_a_less_trusted_run_learns_again_is_recalled_again(
    forgetful: Installation, repository: str
) -> None:
    async with Lorebus(forgetful.settings.nats_url, tenant=TENANT) as memory:
        first = await forgetful.publish(ci_run(repository, LOG), memory)
        [lesson_id] = first.item_ids
        await age(forgetful, lesson_id, days=9)
        assert (await memory.recall(QUESTION, repository=repository, deadline_seconds=5)).items == []
        [row] = await forgetful.rows(sa.select(memory_items.c.summary).where(memory_items.c.id == lesson_id))
        note = {"repository": repository, "writer": "shellStep", "run_id": "another"}
        await memory.save_note(**note, summary=row["summary"], rationale="seen again", deadline_seconds=10)
        found = await memory.recall(QUESTION, repository=repository, deadline_seconds=5)
    assert str(lesson_id) in [item.id for item in found.items]
