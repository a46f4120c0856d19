"""Forgetting on real servers: what goes, what comes back, and what is told of it (spec 7 and 12)."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from conftest import Installation, ci_run, dump_database, run_services
from forgettable import ACTOR, active_ids, find, forget, ids_of, is_counted_right, merge, save, save_several
from lorebus import InvalidMessage, Lorebus

from libs.common.administered_settings import AdministeredSettings
from libs.common.domain.setting_keys import PHYSICAL_ERASURE_DAYS
from libs.common.schema import audit, entries, gate_verdicts, inbox, memory_items, scope_terms, scopes, tombstones
from libs.common.settings import CommonSettings
from services.consolidator.app import PROGRAM as CONSOLIDATOR

LOG = "Error: Cannot find module 'left-pad-{n}'\nnpm ERR! code ELIFECYCLE\n"


@pytest.fixture(scope="module")
async def memory(servers: CommonSettings, installation: Installation) -> AsyncIterator[Installation]:
    """All services."""
    async with run_services(servers, CONSOLIDATOR):
        yield installation


async def test_a_source_deleted_takes_its_merge_along_and_restores_the_others(
    memory: Installation, repository: str
) -> None:
    first, second, third = await save_several(memory, repository, 3)
    merged = await merge(memory, first, second, third)
    fact = await forget(memory, ids=[second])
    assert (ids_of(fact, "deleted"), set(ids_of(fact, "restored"))) == ([second, merged], {first, third})
    assert await active_ids(memory, repository) == {first, third}
    assert await is_counted_right(memory, repository)


async def test_merges_of_merges_go_and_give_back_what_they_held(memory: Installation, repository: str) -> None:
    first, second, third, fourth = await save_several(memory, repository, 4)
    inner = await merge(memory, first, second)
    outer = await merge(memory, inner, third)
    fact = await forget(memory, ids=[first])
    assert (ids_of(fact, "deleted"), set(ids_of(fact, "restored"))) == ([first, inner, outer], {second, third})
    assert await active_ids(memory, repository) == {second, third, fourth}
    assert await is_counted_right(memory, repository)


async def test_a_merged_target_takes_its_sources_along_and_restores_none(memory: Installation, repository: str) -> None:
    sources = await save_several(memory, repository, 2)
    merged = await merge(memory, *sources)
    fact = await forget(memory, ids=[merged])
    assert ids_of(fact, "deleted")[0] == merged
    assert (set(ids_of(fact, "deleted")), fact["restored"]) == ({merged, *sources}, [])
    assert (await find(memory, merged, *sources), await active_ids(memory, repository)) == ({}, set())
    assert await is_counted_right(memory, repository)


async def test_a_source_still_covered_by_another_merge_stays_hidden(memory: Installation, repository: str) -> None:
    first, second, third = await save_several(memory, repository, 3)
    retracted = await merge(memory, first, second)
    standing = await merge(memory, second, third)
    fact = await forget(memory, ids=[first])
    assert (ids_of(fact, "deleted"), fact["restored"]) == ([first, retracted], [])
    assert await active_ids(memory, repository) == {standing}
    assert (await find(memory, second))[second]["consolidated_at"] is not None


async def test_a_superseded_row_comes_back(memory: Installation, repository: str) -> None:
    text = "The build of the parser fails without the compiler cache of the runner."
    older = await save(memory, repository, text)
    newer = await save(memory, repository, text, supersede=True)
    assert (await find(memory, older))[older]["superseded_by_id"] == newer
    fact = await forget(memory, ids=[newer])
    row = (await find(memory, older))[older]
    assert (ids_of(fact, "deleted"), ids_of(fact, "restored")) == ([newer], [older])
    assert (row["superseded_at"], row["superseded_by_id"]) == (None, None)
    assert [item.id for item in (await memory.recall(repository, text, similarity_min=0)).items] == [str(older)]
    assert await is_counted_right(memory, repository)


async def test_a_row_back_from_a_merge_that_something_newer_supersedes_is_told_restored_and_stays_hidden(
    memory: Installation, repository: str
) -> None:
    first, second, newer = await save_several(memory, repository, 3)
    merged = await merge(memory, first, second)
    async with memory.engine.begin() as connection:
        stamp = {"superseded_at": sa.func.now(), "superseded_by_id": newer}
        await connection.execute(sa.update(memory_items).where(memory_items.c.id == second).values(stamp))
    fact = await forget(memory, ids=[first])
    assert (ids_of(fact, "deleted"), ids_of(fact, "restored")) == ([first, merged], [second])
    assert await active_ids(memory, repository) == {newer}
    assert await is_counted_right(memory, repository)


async def test_no_ids_delete_and_restore_nothing(memory: Installation) -> None:
    fact = await forget(memory, ids=[])
    event = await memory.end_of(fact["event_id"])
    assert (fact["deleted"], fact["restored"], event.status, event.reason) == ([], [], "skipped", "nothing to forget")


async def test_an_unknown_id_is_no_error(memory: Installation, repository: str) -> None:
    [known] = await save_several(memory, repository, 1)
    fact = await forget(memory, ids=[uuid4(), known])
    assert ids_of(fact, "deleted") == [known]


async def test_ids_of_another_tenant_are_not_touched(memory: Installation, repository: str) -> None:
    [mine] = await save_several(memory, repository, 1)
    async with Lorebus(memory.settings.nats_url, tenant="acme") as stranger:
        published = await stranger.forget(ids=[mine], actor=ACTOR)
    event = await memory.end_of(published.event_id)
    assert (event.status, mine in await find(memory, mine)) == ("skipped", True)
    assert await active_ids(memory, repository) == {mine}


async def test_the_audit_holds_ids_and_counts_and_never_a_text(memory: Installation, repository: str) -> None:
    secret = f"zyx{uuid4().hex}"
    first = await save(memory, repository, f"The {secret} of the parser.")
    second = await save(memory, repository, "Another one of the parser.")
    merged = await merge(memory, first, second, summary=f"Both, and {secret}.")
    fact = await forget(memory, ids=[first], reason="asked for")
    [row] = await memory.rows(sa.select(audit).filter_by(entity_id=str(first)))
    assert (row["actor"], row["action"], row["entity_kind"]) == (ACTOR, "memory.forget", "memory")
    assert row["after"] == {
        "event_id": fact["event_id"],
        "reason": "asked for",
        "deleted": [str(first), str(merged)],
        "restored": [str(second)],
        "deleted_count": 2,
        "restored_count": 1,
    }
    assert secret not in await dump_database(memory.engine)


async def test_the_words_and_the_verdict_of_a_deleted_memory_go_those_of_others_stay(
    memory: Installation, repository: str
) -> None:
    text = f"The flag {uuid4().hex} of the compiler."
    kept, gone = [await save(memory, repository, text) for _ in range(2)]
    row = (await find(memory, gone))[gone]
    verdict = sa.select(gate_verdicts).filter_by(text_sha256=row["text_sha256"])
    words = sa.select(scope_terms).where(scope_terms.c.scope_id == row["scope_id"], scope_terms.c.documents == 0)
    await forget(memory, ids=[gone])
    assert (len(await memory.rows(verdict)), await memory.rows(words)) == (1, [])
    await forget(memory, ids=[kept])
    assert (await memory.rows(verdict), await memory.rows(words)) == ([], [])


async def test_the_date_by_which_the_bytes_are_gone_is_what_administrators_promise(apart: CommonSettings) -> None:
    async with run_services(apart, CONSOLIDATOR) as memory:
        settings = AdministeredSettings(memory.engine)
        await settings.set(PHYSICAL_ERASURE_DAYS.name, 3, tenant="default", actor="tests")
        before = datetime.now(UTC).date()
        fact = await forget(memory, ids=[])
    days = {before + timedelta(days=3), datetime.now(UTC).date() + timedelta(days=3)}
    assert fact["physical_by"] in {day.isoformat() for day in days}


async def into_channel(memory: Installation, item_id: UUID, channel: str, **changes: object) -> None:
    """Moves a memory into a channel, as the writer of channel memory will store it."""
    scope = {"tenant": "default", "kind": "channel-memory", "key": channel}
    async with memory.engine.begin() as connection:
        known = sa.select(scopes.c.id).filter_by(**scope)
        scope_id = await connection.scalar(known)
        if scope_id is None:
            scope_id = await connection.scalar(sa.insert(scopes).values(scope).returning(scopes.c.id))
        values = {"scope_id": scope_id, **changes}
        await connection.execute(sa.update(memory_items).where(memory_items.c.id == item_id).values(values))


async def test_a_person_is_erased_from_every_channel_turns_and_facts_of_many_alike(
    memory: Installation, repository: str
) -> None:
    person, channels = f"U{uuid4().hex[:8]}", [f"C{uuid4().hex[:8]}" for _ in range(2)]
    turn, fact_of_many, of_another, unnamed, lesson = await save_several(memory, repository, 5)
    await into_channel(memory, turn, channels[0], metadata={"userSlackId": person})
    await into_channel(memory, fact_of_many, channels[1], authors=["Uother", person])
    await into_channel(memory, of_another, channels[1], authors=["Uother"])
    await into_channel(memory, unnamed, channels[1])
    told = await forget(memory, person=person)
    assert set(ids_of(told, "deleted")) == {turn, fact_of_many}
    assert set(await find(memory, turn, fact_of_many, of_another, unnamed, lesson)) == {of_another, unnamed, lesson}
    [row] = await memory.rows(sa.select(audit).filter_by(entity_kind="person", entity_id=person))
    assert row["after"] == {"deleted_count": 2, "restored_count": 0}
    assert told["unattributed"] >= 1


async def test_a_merge_of_many_persons_goes_by_its_source_and_gives_the_others_words_back(
    memory: Installation, repository: str
) -> None:
    person, channel = f"U{uuid4().hex[:8]}", f"C{uuid4().hex[:8]}"
    theirs, of_another = await save_several(memory, repository, 2)
    merged = await merge(memory, theirs, of_another)
    await into_channel(memory, theirs, channel, authors=[person])
    await into_channel(memory, of_another, channel, authors=["Uother"])
    await into_channel(memory, merged, channel, authors=[person, "Uother"])
    told = await forget(memory, person=person)
    assert (ids_of(told, "deleted"), ids_of(told, "restored")) == ([theirs, merged], [of_another])


async def test_a_session_is_forgotten_with_all_its_entries(memory: Installation, repository: str) -> None:
    session_id = uuid4().hex
    inside, outside = await save_several(memory, repository, 2)
    async with memory.engine.begin() as connection:
        rows = [{"item_id": inside, "session_id": session_id}, {"item_id": outside, "session_id": uuid4().hex}]
        await connection.execute(sa.insert(entries), [row | {"tenant": "default"} for row in rows])
    told = await forget(memory, session_id=session_id)
    assert (ids_of(told, "deleted"), set(await find(memory, inside, outside))) == ([inside], {outside})


async def test_an_event_is_forgotten_by_its_id_and_stays_forgotten_when_it_is_published_again(
    memory: Installation, repository: str
) -> None:
    run = ci_run(repository, LOG.format(n=1), event_id=uuid4().hex)
    event = await memory.publish(run)
    told = await forget(memory, event_ids=[event.event_id])
    assert ids_of(told, "deleted") == list(event.item_ids)
    await memory.memory.publish_run(run | {"run_id": str(uuid4())})
    again = await memory.facts("event_conflict", event_id=event.event_id)
    assert again["schema_name"] == "run.finished"
    assert await find(memory, *event.item_ids) == {}


async def test_repeating_the_command_changes_nothing(memory: Installation, repository: str) -> None:
    first, second = await save_several(memory, repository, 2)
    await merge(memory, first, second)
    event_id = uuid4().hex
    fact = await forget(memory, ids=[first], event_id=event_id)
    again = await memory.memory.forget(ids=[first], actor=ACTOR, event_id=event_id)
    assert again.duplicate
    twice = await forget(memory, ids=[first])
    assert (ids_of(fact, "restored"), twice["deleted"], twice["restored"]) == ([second], [], [])
    assert await active_ids(memory, repository) == {second}


@pytest.mark.parametrize(
    "targets", [{}, {"ids": [], "person": "U1"}, {"person": "U1", "session_id": "s"}, {"ids": ["7"]}, {"person": ""}],
    ids=["none", "ids and person", "person and session", "no id", "nobody"],
)  # fmt: skip
async def test_a_command_names_one_kind_of_target_and_real_ids(
    memory: Installation, targets: dict[str, object]
) -> None:
    with pytest.raises(InvalidMessage):
        await memory.memory.forget(actor=ACTOR, **targets)  # type: ignore[arg-type]


async def test_what_was_deleted_is_buried_by_id(memory: Installation, repository: str) -> None:
    first, second = await save_several(memory, repository, 2)
    merged = await merge(memory, first, second)
    source = (await find(memory, first))[first]["source_event_id"]
    await forget(memory, ids=[first])
    rows = await memory.rows(sa.select(tombstones.c.kind, tombstones.c.key))
    assert {("item", str(first)), ("item", str(merged)), ("event", source)} <= {
        (row["kind"], row["key"]) for row in rows
    }
    assert ("item", str(second)) not in {(row["kind"], row["key"]) for row in rows}


async def test_the_inbox_row_of_a_forgotten_event_stays_with_ids_alone(memory: Installation, repository: str) -> None:
    event = await memory.publish(ci_run(repository, LOG.format(n=2)))
    await forget(memory, ids=list(event.item_ids))
    [row] = await memory.rows(sa.select(inbox).filter_by(event_id=event.event_id))
    assert (row["status"], row["item_ids"]) == ("written", list(event.item_ids))
