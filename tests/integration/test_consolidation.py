"""Like memories become one that stands for them, on the real bus, gate, embedder and database."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

import pytest
import sqlalchemy as sa
from conftest import Installation, run_services
from lorebus import InvalidMessage
from mergeable import (
    DOCS,
    OTHER,
    UPLOAD,
    consolidate,
    counts,
    items_of,
    merged_of,
    new_id,
    save,
    scope_of,
    until_waiting,
)

from libs.common.administered_settings import AdministeredSettings
from libs.common.database import lock_scope
from libs.common.domain.memory import screened_text, text_hash
from libs.common.domain.setting_cascade import Place
from libs.common.domain.setting_keys import LESSON_MAX_AGE_DAYS
from libs.common.schema import (
    gate_findings,
    gate_verdicts,
    memory_items,
    memory_sources,
    memory_terms,
    memory_vectors,
    scope_terms,
    scopes,
)
from libs.common.settings import CommonSettings
from libs.common.tombstones import bury
from services.consolidator.app import PROGRAM as CONSOLIDATOR

GRADED = {"failure_type": "CI_FAILURE"}


@pytest.fixture(scope="module")
async def memory(installation: Installation, servers: CommonSettings) -> AsyncIterator[Installation]:
    """The services of the session, and a consolidator without a model."""
    async with run_services(servers.model_copy(update={"settings_cache_seconds": 0.0}), CONSOLIDATOR):
        yield installation


async def test_identical_vectors_merge_three_into_one(memory: Installation, repository: str) -> None:
    ids = await save(memory, repository, [UPLOAD[0]] * 3)
    fact = await consolidate(memory, repository)
    [merged] = await merged_of(memory, repository)
    rows = await items_of(memory, repository)
    assert counts(fact) == (1, 1, 3, 1)
    assert (fact["created"], fact["left"]) == ([str(merged["id"])], {})
    assert all(rows[id_]["consolidated_at"] is not None for id_ in ids)
    assert merged["consolidated_at"] is None


async def test_a_merged_row_has_the_provenance_of_all_its_sources(memory: Installation, repository: str) -> None:
    ids = await save(memory, repository, UPLOAD, **GRADED)
    async with memory.engine.begin() as connection:
        grades = sa.update(memory_items).where(memory_items.c.id.in_(ids[:2]))
        await connection.execute(grades.where(memory_items.c.id == ids[0]).values(confidence=0.9, origin_tier=2))
        await connection.execute(grades.where(memory_items.c.id == ids[1]).values(confidence=0.3))
    await consolidate(memory, repository)
    [merged] = await merged_of(memory, repository)
    rows = await items_of(memory, repository)
    lineage = await memory.rows(sa.select(memory_sources.c.source_id).filter_by(merged_id=merged["id"]))
    [vector] = await memory.rows(sa.select(memory_vectors).filter_by(item_id=merged["id"]))
    assert (merged["agent_key"], merged["model"], merged["cost_usd"]) == ("lessonConsolidator", None, None)
    assert (merged["failure_type"], merged["origin_tier"], vector["origin_tier"]) == ("CI_FAILURE", 1, 1)
    assert merged["confidence"] == pytest.approx(0.6), "the mean of those that are graded"
    assert merged["evidence_at"] == max(rows[id_]["evidence_at"] for id_ in ids)
    assert merged["metadata"]["clusterSize"] == 3
    assert set(merged["metadata"]["consolidatedFrom"]) == set(map(str, ids)) == {str(r["source_id"]) for r in lineage}
    assert merged["metadata"]["merged_by"] == "extract"
    assert merged["scope_id"] == rows[ids[0]]["scope_id"]


async def test_a_merged_row_stands_on_a_clean_verdict_of_its_exact_text(memory: Installation, repository: str) -> None:
    await save(memory, repository, UPLOAD)
    await consolidate(memory, repository)
    [merged] = await merged_of(memory, repository)
    assert merged["text_sha256"] == text_hash(screened_text(merged["summary"], merged["rationale"]))
    verdicts = sa.select(gate_verdicts.c.verdict).filter_by(
        text_sha256=merged["text_sha256"], pattern_set=merged["pattern_set"]
    )
    assert await memory.rows(verdicts) == [{"verdict": "clean"}]


async def test_afterwards_the_merged_row_is_recalled_and_its_sources_are_not(
    memory: Installation, repository: str
) -> None:
    await save(memory, repository, UPLOAD)
    await consolidate(memory, repository)
    [merged] = await merged_of(memory, repository)
    reply = await memory.recall(repository, "upload test libmagic")
    explained = await memory.memory.explain(str(merged["id"]), repository=repository, deadline_seconds=5)
    assert [item.id for item in reply.items] == [str(merged["id"])]
    assert explained.lesson is not None
    assert len(explained.lesson.merged_from) == 3


async def test_words_and_items_of_the_scope_are_counted_right(memory: Installation, repository: str) -> None:
    await save(memory, repository, [*UPLOAD, *DOCS, OTHER])
    await consolidate(memory, repository)
    scope_id = await scope_of(memory, repository)
    [scope] = await memory.rows(sa.select(scopes.c.items_active).filter_by(id=scope_id))
    [active] = await memory.rows(
        sa.select(sa.func.count().label("n")).select_from(memory_vectors).filter_by(scope_id=scope_id, active=True)
    )
    stood = sa.select(memory_terms.c.term, sa.func.count().label("documents")).filter_by(scope_id=scope_id)
    counted = sa.select(scope_terms.c.term, scope_terms.c.documents).filter_by(scope_id=scope_id)
    words = await memory.rows(stood.group_by(memory_terms.c.term).order_by(memory_terms.c.term))
    assert scope["items_active"] == active["n"] == 3
    assert words == await memory.rows(counted.where(scope_terms.c.documents > 0).order_by(scope_terms.c.term))


async def test_two_themes_become_two_memories_and_what_is_like_none_stays(
    memory: Installation, repository: str
) -> None:
    *_, other = await save(memory, repository, [*UPLOAD, *DOCS, OTHER])
    fact = await consolidate(memory, repository)
    rows = await items_of(memory, repository)
    merged = await merged_of(memory, repository)
    assert counts(fact) == (2, 2, 6, 2)
    assert sorted("sphinx" in row["summary"] for row in merged) == [False, True]
    assert rows[other]["consolidated_at"] is None


async def test_below_the_least_size_nothing_is_looked_at(memory: Installation, repository: str) -> None:
    await save(memory, repository, UPLOAD[:2])
    fact = await consolidate(memory, repository)
    event = await memory.end_of(fact["event_id"])
    assert (counts(fact), event.status, event.reason) == ((0, 0, 0, 0), "skipped", "too_few")


async def test_where_nothing_was_ever_written_all_counts_are_zero(memory: Installation, repository: str) -> None:
    assert counts(await consolidate(memory, repository)) == (0, 0, 0, 0)


async def test_without_a_qualifying_cluster_all_counts_are_zero(memory: Installation, repository: str) -> None:
    await save(memory, repository, [UPLOAD[0], DOCS[0], OTHER])
    fact = await consolidate(memory, repository)
    event = await memory.end_of(fact["event_id"])
    assert (counts(fact), event.status, event.reason) == ((0, 0, 0, 0), "skipped", "nothing_alike")


async def test_a_cluster_of_two_is_skipped_unless_two_are_asked_for(memory: Installation, repository: str) -> None:
    await save(memory, repository, [*UPLOAD[:2], OTHER])
    assert counts(await consolidate(memory, repository)) == (0, 0, 0, 0)
    assert counts(await consolidate(memory, repository, cluster_size_min=2)) == (1, 1, 2, 1)


async def test_a_higher_bar_merges_less(memory: Installation, repository: str) -> None:
    await save(memory, repository, UPLOAD)
    assert counts(await consolidate(memory, repository, similarity_min=0.999)) == (0, 0, 0, 0)
    assert counts(await consolidate(memory, repository)) == (1, 1, 3, 1)


async def test_a_memory_without_a_vector_of_the_model_is_left_out(memory: Installation, repository: str) -> None:
    *_, without = await save(memory, repository, [UPLOAD[0]] * 4)
    async with memory.engine.begin() as connection:
        await connection.execute(sa.delete(memory_vectors).filter_by(item_id=without))
    assert counts(await consolidate(memory, repository)) == (1, 1, 3, 1)
    assert (await items_of(memory, repository))[without]["consolidated_at"] is None


async def test_mixed_types_give_none(memory: Installation, repository: str) -> None:
    await save(memory, repository, UPLOAD[:2], failure_type="CI_FAILURE")
    await save(memory, repository, UPLOAD[2:], failure_type="MERGE_CONFLICT")
    await consolidate(memory, repository)
    [merged] = await merged_of(memory, repository)
    assert merged["failure_type"] is None


async def test_without_a_model_nothing_is_said_that_no_source_says(memory: Installation, repository: str) -> None:
    await save(memory, repository, UPLOAD[:2], rationale="The job log names the shared object.")
    await save(memory, repository, UPLOAD[2:], rationale="Debian slim lost the package in March.")
    await consolidate(memory, repository)
    [merged] = await merged_of(memory, repository)
    assert merged["summary"] in UPLOAD
    assert "The job log names the shared object." in merged["rationale"]
    assert "Debian slim lost the package in March." in merged["rationale"]


async def test_a_merged_row_can_be_merged_again(memory: Installation, repository: str) -> None:
    await save(memory, repository, UPLOAD)
    await consolidate(memory, repository)
    [first] = await merged_of(memory, repository)
    await save(memory, repository, UPLOAD[:2])
    await consolidate(memory, repository)
    second = next(row for row in await merged_of(memory, repository) if row["id"] != first["id"])
    assert str(first["id"]) in second["metadata"]["consolidatedFrom"]


async def test_aged_lessons_are_not_merged(memory: Installation, repository: str) -> None:
    *_, aged = await save(memory, repository, [UPLOAD[0]] * 4)
    team, settings = f"T-{repository}", AdministeredSettings(memory.engine)
    await settings.set(LESSON_MAX_AGE_DAYS.name, 30, tenant="default", actor="test", place=Place("team", team))
    async with memory.engine.begin() as connection:
        await connection.execute(sa.update(scopes).filter_by(key=repository).values(team_id=team))
        old = {"created_at": sa.func.now() - timedelta(days=31)}
        await connection.execute(sa.update(memory_items).filter_by(id=aged).values(old))
        await connection.execute(sa.update(memory_vectors).filter_by(item_id=aged).values(old))
    assert counts(await consolidate(memory, repository)) == (1, 1, 3, 1)
    assert (await items_of(memory, repository))[aged]["consolidated_at"] is None


async def test_what_a_later_pattern_set_matches_is_not_merged(memory: Installation, repository: str) -> None:
    *_, found = await save(memory, repository, [UPLOAD[0]] * 4)
    async with memory.engine.begin() as connection:
        finding = {"item_id": found, "tenant": "default", "pattern_set": "x", "patterns": ["p"]}
        await connection.execute(sa.insert(gate_findings).values(finding))
    assert counts(await consolidate(memory, repository)) == (1, 1, 3, 1)
    assert (await items_of(memory, repository))[found]["consolidated_at"] is None


async def test_text_from_outside_is_merged_with_its_like_alone(memory: Installation, repository: str) -> None:
    await save(memory, repository, UPLOAD[:2])
    outside = await save(memory, repository, UPLOAD, writer="stranger")
    fact = await consolidate(memory, repository)
    [merged] = await merged_of(memory, repository)
    assert counts(fact) == (1, 1, 3, 1)
    assert (set(merged["metadata"]["consolidatedFrom"]), merged["origin_tier"]) == (set(map(str, outside)), 0)


async def test_the_taps_hear_no_text(memory: Installation, repository: str) -> None:
    await save(memory, repository, UPLOAD)
    assert "libmagic" not in json.dumps(await consolidate(memory, repository))


async def test_the_same_request_counts_once(memory: Installation, repository: str) -> None:
    await save(memory, repository, UPLOAD)
    event_id = new_id()
    await consolidate(memory, repository, event_id=event_id)
    await save(memory, repository, DOCS)
    published = await memory.memory.request_consolidation(repository=repository, event_id=event_id)
    assert published.duplicate
    assert len(await merged_of(memory, repository)) == 1


async def test_a_request_that_cannot_be_is_the_callers_to_know(memory: Installation) -> None:
    with pytest.raises(InvalidMessage, match="not both"):
        await memory.memory.request_consolidation(repository="a/b", channel="C1")
    with pytest.raises(InvalidMessage, match="cluster_size_min"):
        await memory.memory.request_consolidation(repository="a/b", cluster_size_min=1)


async def test_a_channel_is_consolidated_under_its_own_names(memory: Installation, repository: str) -> None:
    channel = f"C{repository[-8:]}"
    await save(memory, repository, UPLOAD)
    async with memory.engine.begin() as connection:
        # Nothing writes a channel's memory yet: a repository's scope is made one.
        await connection.execute(
            sa.update(scopes).filter_by(key=repository).values(kind="channel-memory", key=channel, team_id="T1")
        )
    published = await memory.memory.request_consolidation(channel=channel)
    fact = await memory.facts("channel_consolidated", seconds=20, event_id=published.event_id)
    [merged] = await memory.rows(sa.select(memory_items).filter_by(id=UUID(fact["created"][0])))
    assert (fact["channel"], fact["memories_consolidated"], fact["memories_created"]) == (channel, 3, 1)
    assert merged["agent_key"] == "channelAssistant"


class TestRaces:
    async def test_two_consolidators_of_one_repository_never_overlap_at_commit(
        self, memory: Installation, servers: CommonSettings, repository: str
    ) -> None:
        await save(memory, repository, UPLOAD)
        scope_id = await scope_of(memory, repository)
        event_ids = [new_id(), new_id()]
        async with run_services(servers, CONSOLIDATOR), memory.engine.begin() as connection:
            await lock_scope(connection, scope_id)
            for event_id in event_ids:
                await memory.memory.request_consolidation(repository=repository, event_id=event_id)
            await until_waiting(connection, scope_id, waiters=2)
            await connection.rollback()
            facts = [await memory.facts("lessons_consolidated", seconds=20, event_id=id_) for id_ in event_ids]
        assert sorted(map(counts, facts)) == [(1, 0, 0, 0), (1, 1, 3, 1)]
        assert sorted([fact["left"] for fact in facts], key=len) == [{}, {"changed": 1}]
        assert len(await merged_of(memory, repository)) == 1

    @pytest.mark.parametrize(
        "change",
        [
            sa.delete(memory_items),
            sa.update(memory_items).values(superseded_at=sa.func.now()),
            sa.update(memory_items).values(consolidated_at=sa.func.now()),
            sa.update(memory_items).values(held_at=sa.func.now()),
        ],
        ids=["deleted", "superseded", "consolidated", "held"],
    )
    async def test_a_source_that_goes_while_its_merge_is_made_leaves_the_cluster(
        self, memory: Installation, repository: str, change: sa.Delete | sa.Update
    ) -> None:
        one, *_ = await save(memory, repository, UPLOAD)
        *_, docs = await save(memory, repository, DOCS)
        scope_id, event_id = await scope_of(memory, repository), new_id()
        async with memory.engine.begin() as connection:
            await lock_scope(connection, scope_id)
            await memory.memory.request_consolidation(repository=repository, event_id=event_id)
            await until_waiting(connection, scope_id)
            await connection.execute(change.where(memory_items.c.id == one))
        fact = await memory.facts("lessons_consolidated", seconds=20, event_id=event_id)
        rows = await items_of(memory, repository)
        assert (counts(fact), fact["left"]) == ((2, 1, 3, 1), {"changed": 1})
        assert rows[docs]["consolidated_at"] is not None
        assert all("libmagic" not in row["summary"] for row in await merged_of(memory, repository))

    async def test_a_source_that_is_forgotten_meanwhile_leaves_the_cluster(
        self, memory: Installation, repository: str
    ) -> None:
        one, *_ = await save(memory, repository, UPLOAD)
        scope_id, event_id = await scope_of(memory, repository), new_id()
        async with memory.engine.begin() as connection:
            await lock_scope(connection, scope_id)
            await memory.memory.request_consolidation(repository=repository, event_id=event_id)
            await until_waiting(connection, scope_id)
            await bury(connection, "default", {"item": [str(one)]})
        fact = await memory.facts("lessons_consolidated", seconds=20, event_id=event_id)
        assert (counts(fact), fact["left"]) == ((1, 0, 0, 0), {"changed": 1})

    async def test_three_twins_written_at_once_leave_one_active(self, memory: Installation, repository: str) -> None:
        await save(memory, repository, [OTHER])
        scope_id = await scope_of(memory, repository)
        twin = {"repository": repository, "writer": "shellStep", "summary": UPLOAD[0]}
        async with memory.engine.begin() as connection:
            await lock_scope(connection, scope_id)
            saves = [asyncio.create_task(memory.memory.save_note(**twin, deadline_seconds=20)) for _ in range(3)]
            await until_waiting(connection, scope_id, waiters=3)
        assert [reply.error for reply in await asyncio.gather(*saves)] == [None] * 3
        rows = (await items_of(memory, repository)).values()
        assert sorted((row["summary"], row["superseded_at"] is None) for row in rows) == [
            (OTHER, True),
            *[(UPLOAD[0], False)] * 2,
            (UPLOAD[0], True),
        ]

    async def test_a_source_whose_text_changed_leaves_the_cluster(self, memory: Installation, repository: str) -> None:
        one, *_ = await save(memory, repository, UPLOAD)
        scope_id, event_id = await scope_of(memory, repository), new_id()
        [row] = [row for id_, row in (await items_of(memory, repository)).items() if id_ == one]
        edited = text_hash(screened_text("edited", row["rationale"]))
        async with memory.engine.begin() as connection:
            await lock_scope(connection, scope_id)
            await memory.memory.request_consolidation(repository=repository, event_id=event_id)
            await until_waiting(connection, scope_id)
            verdict = {"tenant": "default", "text_sha256": edited, "pattern_set": row["pattern_set"]}
            await connection.execute(sa.insert(gate_verdicts).values(**verdict, verdict="clean"))
            edit = sa.update(memory_items).filter_by(id=one).values(summary="edited", text_sha256=edited)
            await connection.execute(edit)
        fact = await memory.facts("lessons_consolidated", seconds=20, event_id=event_id)
        assert (counts(fact), fact["left"]) == ((1, 0, 0, 0), {"changed": 1})
        assert await merged_of(memory, repository) == []
