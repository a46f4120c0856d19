"""A run's page: what its agents were given, and what it left behind."""

from uuid import UUID, uuid4

import sqlalchemy as sa
from conftest import Installation, ci_run

from libs.common.run_lessons import find_run_lessons
from libs.common.schema import memory_items, recall_log

LOG = "Error: Cannot find module 'run-page-{n}'\nnpm ERR! code ELIFECYCLE\n"


async def test_a_run_is_shown_what_it_was_given_and_what_it_wrote(installation: Installation, repository: str) -> None:
    learned = await installation.publish(ci_run(repository, LOG.format(n=1)))
    reader = str(uuid4())
    for agent in ("implementer", "ci_fixer", "ci_fixer"):
        reply = await installation.recall(repository, LOG.format(n=1), run_id=reader, agent=agent)
        assert [item.id for item in reply.items] == [str(learned.item_ids[0])]
    await installation.until(
        sa.select(recall_log).where(recall_log.c.run_id == reader).group_by(recall_log.c.id).offset(2)
    )
    wrote = await installation.publish(
        {**ci_run(repository, "pytest: E   AssertionError: the run page differs"), "run_id": reader}
    )
    lessons = await find_run_lessons(installation.engine, "default", reader)
    assert [(one.id, one.agents, one.state) for one in lessons.recalled] == [
        (learned.item_ids[0], ("implementer", "ci_fixer"), "active")
    ]
    assert [one.id for one in lessons.written] == list(wrote.item_ids)


async def test_a_recalled_lesson_that_is_gone_or_replaced_says_so(installation: Installation, repository: str) -> None:
    run, replaced = str(uuid4()), ci_run(repository, LOG.format(n=2))
    event = await installation.publish(replaced)
    gone = uuid4()
    async with installation.engine.begin() as connection:
        await connection.execute(
            sa.insert(recall_log).values(
                tenant="default",
                scope_kind="swe-lessons",
                scope_key=repository,
                run_id=run,
                item_ids=[gone, event.item_ids[0]],
                dropped_ids=[],
            )
        )
    newer = await installation.publish(ci_run(repository, LOG.format(n=2)))
    lessons = await find_run_lessons(installation.engine, "default", run)
    assert [(one.id, one.state, one.agents) for one in lessons.recalled] == [
        (gone, "deleted", ("unnamed",)),
        (event.item_ids[0], "superseded", ("unnamed",)),
    ]
    [row] = await installation.rows(sa.select(memory_items.c.superseded_by_id).where(_is(event.item_ids[0])))
    assert row == {"superseded_by_id": newer.item_ids[0]}


async def test_another_tenants_run_shows_nothing(installation: Installation, repository: str) -> None:
    run = ci_run(repository, LOG.format(n=3))
    await installation.publish(run)
    lessons = await find_run_lessons(installation.engine, "somebody-else", run["run_id"])
    assert (list(lessons.recalled), list(lessons.written)) == ([], [])


def _is(id_: UUID) -> sa.ColumnElement[bool]:
    return memory_items.c.id == id_
