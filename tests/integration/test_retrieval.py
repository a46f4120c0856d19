"""What finds a lesson: the vector, the words, the failure itself; and what becomes of lessons near each other."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from conftest import Installation, ci_run, run_services
from embeddings import MODEL, EmbeddingProvider, embedding_provider
from lorebus import InvalidMessage, RecallReply

from libs.common.administered_settings import AdministeredSettings
from libs.common.domain.tokens import count_tokens
from libs.common.schema import memory_fingerprints, memory_items
from libs.common.settings import CommonSettings
from services.gate.app import PROGRAM as GATE
from services.recall.app import PROGRAM as RECALL
from services.writer.app import PROGRAM as WRITER

ERROR = "src/parser.c:88:12: error: implicit declaration of function 'strlcpy'"
LOG = f"cc -c src/parser.c\n{ERROR}\nmake: *** [parser.o] Error 1\n"
ELSEWHERE = "/home/ci/build/acme/shop/src/parser.c:91:3: error: implicit declaration of function 'strlcpy'"
UNRELATED = "translate the privacy policy page into Portuguese"


async def save(installation: Installation, repository: str, summary: str, **fields: Any) -> str:
    note = {"repository": repository, "writer": "shellStep", "summary": summary} | fields
    reply = await installation.memory.save_note(**note, deadline_seconds=10)
    assert reply.id, reply
    return reply.id


async def publish(installation: Installation, repository: str, log: str) -> str:
    return str((await installation.publish(ci_run(repository, log))).item_ids[0])


async def row_of(installation: Installation, id_: str) -> dict[str, Any]:
    [row] = await installation.rows(sa.select(memory_items).where(memory_items.c.id == UUID(id_)))
    return row


def ids_of(reply: RecallReply) -> list[str]:
    return [item.id for item in reply.items]


# --- the failure itself ----------------------------------------------------------------------------------------------


async def test_the_same_error_is_recognised_whatever_stands_around_it(
    installation: Installation, repository: str
) -> None:
    lesson = await publish(installation, repository, LOG)
    noise = "\n".join(f"Compiling dependency {n} of 300" for n in range(300))
    reply = await installation.recall(repository, f"{noise}\n{ELSEWHERE}\n", agent="ci_fixer")
    assert ids_of(reply) == [lesson]
    assert reply.items[0].scores
    assert reply.items[0].scores.fingerprint


OTHER_ERRORS = "\n".join(
    f"Error: Cannot find module '{name}' imported by the {name} bundle"
    for name in ("fast-glob", "left-pad", "chokidar", "webpack-merge", "postcss-loader", "babel-core", "yargs-parser")
)


async def test_the_same_failure_is_found_among_many_others_at_the_strictest_bar(
    installation: Installation, repository: str
) -> None:
    lesson = await publish(installation, repository, LOG)
    asked = {"agent": "ci_fixer", "similarity_min": 1}
    assert ids_of(await installation.recall(repository, f"{OTHER_ERRORS}\n{ELSEWHERE}", **asked)) == [lesson]
    assert ids_of(await installation.recall(repository, OTHER_ERRORS, **asked)) == []


async def test_the_same_failure_comes_before_what_only_speaks_of_it(
    installation: Installation, repository: str
) -> None:
    lesson = await publish(installation, repository, LOG)
    about = "error: implicit declaration of strlcpy in parser.c, as the wiki says, comes from an old libbsd"
    await save(installation, repository, about)
    reply = await installation.recall(repository, ELSEWHERE, similarity_min=0)
    assert (ids_of(reply)[0], len(reply.items)) == (lesson, 2)


async def test_another_repository_is_not_told_of_the_same_failure(installation: Installation, repository: str) -> None:
    await publish(installation, f"{repository}-neighbour", LOG)
    await save(installation, repository, "The release is cut on Mondays.")
    assert ids_of(await installation.recall(repository, ELSEWHERE)) == []


async def test_a_superseded_lesson_is_not_found_by_its_failure(installation: Installation, repository: str) -> None:
    older = await publish(installation, repository, LOG)
    newer = await publish(installation, repository, LOG)
    kept = await installation.rows(sa.select(memory_fingerprints.c.item_id).filter_by(item_id=UUID(older)))
    assert kept
    assert ids_of(await installation.recall(repository, ELSEWHERE)) == [newer]


# --- modes and their explanation ------------------------------------------------------------------------------------


async def test_each_mode_asks_with_what_it_names(installation: Installation, repository: str) -> None:
    lesson = await publish(installation, repository, LOG)
    by_mode = {
        mode: await installation.recall(repository, ELSEWHERE, similarity_min=0, mode=mode)
        for mode in ("vector", "hybrid", "lexical")
    }
    scores = {mode: reply.items[0].scores for mode, reply in by_mode.items()}
    assert all(ids_of(reply) == [lesson] and not reply.degraded for reply in by_mode.values())
    vector, hybrid, lexical = scores["vector"], scores["hybrid"], scores["lexical"]
    assert vector
    assert hybrid
    assert lexical
    assert (vector.coverage, vector.fingerprint) == (0, False)
    assert (lexical.similarity, lexical.coverage, lexical.fingerprint) == (None, hybrid.coverage, True)
    assert (hybrid.similarity, hybrid.fingerprint) == (vector.similarity, True)
    assert hybrid.fused == pytest.approx(vector.fused + lexical.fused, abs=1e-4)


async def test_an_unknown_mode_is_refused_by_name(installation: Installation, repository: str) -> None:
    with pytest.raises(InvalidMessage, match="mode"):
        await installation.recall(repository, "error", mode="semantic")


@pytest.mark.parametrize("mode", ["vector", "hybrid", "lexical"])
async def test_in_every_mode_an_unrelated_question_gets_nothing(
    installation: Installation, repository: str, mode: str
) -> None:
    await publish(installation, repository, LOG)
    reply = await installation.recall(repository, UNRELATED, mode=mode)
    assert (reply.items, reply.degraded) == ([], False)


@pytest.fixture
async def uncached(apart: CommonSettings) -> AsyncIterator[Installation]:
    settings = apart.model_copy(update={"settings_cache_seconds": 0})
    async with run_services(settings, GATE, WRITER, RECALL) as services:
        yield services


async def set_for_all(installation: Installation, name: str, value: object) -> None:
    await AdministeredSettings(installation.engine).set(name, value, tenant="default", actor="tests")


async def test_with_the_bare_cosine_the_setting_is_the_seeds_rule_to_the_letter(
    uncached: Installation, repository: str
) -> None:
    await publish(uncached, repository, LOG)
    [near] = (await uncached.recall(repository, ELSEWHERE, similarity_min=0)).items
    await set_for_all(uncached, "lessonRetrievalCalibration", "cosine")
    below = await uncached.recall(repository, ELSEWHERE, similarity_min=near.similarity - 0.01)
    above = await uncached.recall(repository, ELSEWHERE, similarity_min=near.similarity + 0.01)
    by_failure = await uncached.recall(repository, ELSEWHERE, similarity_min=near.similarity + 0.01, mode="hybrid")
    assert (ids_of(below), ids_of(above), ids_of(by_failure)) == ([near.id], [], [near.id])
    assert below.items[0].scores
    assert (below.items[0].scores.coverage, below.items[0].scores.fingerprint) == (0, False)


# --- without an embedder ---------------------------------------------------------------------------------------------


@pytest.fixture
async def provider(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddingProvider]:
    async with embedding_provider() as provider:
        for name, value in provider.variables.items():
            monkeypatch.setenv(name, value)
        yield provider


@pytest.mark.filterwarnings("ignore")
async def test_while_the_embedder_is_away_words_and_failures_are_still_found_and_screened(
    apart: CommonSettings, repository: str, provider: EmbeddingProvider
) -> None:
    hosted = apart.model_copy(update={"embedder": f"litellm/{MODEL}"})
    async with run_services(hosted, GATE, WRITER, RECALL) as services:
        lesson = await publish(services, repository, LOG)
        before = await services.recall(repository, ERROR)
        provider.is_down = True
        down = {
            query: await services.recall(repository, query)
            for query in (ELSEWHERE, "strlcpy is declared nowhere in parser.c", UNRELATED)
        }
        by_vector = await services.recall(repository, ELSEWHERE, mode="vector")
        by_words = await services.recall(repository, ELSEWHERE, mode="lexical")
        provider.is_down = False
        provider.hold_from(0)
        hung = await services.recall(repository, ELSEWHERE)
    assert (ids_of(before), before.reason) == ([lesson], None)
    assert [ids_of(reply) for reply in (*down.values(), hung)] == [[lesson], [lesson], [], [lesson]]
    assert {reply.reason for reply in (*down.values(), hung, by_vector)} == {"embedder"}
    assert (ids_of(by_vector), ids_of(by_words), by_words.degraded) == ([], [lesson], False)
    assert f"(lesson {lesson})" in hung.block


@pytest.mark.filterwarnings("ignore")
async def test_without_embedder_and_gate_nothing_is_recalled(
    apart: CommonSettings, repository: str, provider: EmbeddingProvider
) -> None:
    hosted = apart.model_copy(update={"embedder": f"litellm/{MODEL}"})
    async with run_services(hosted, GATE, WRITER) as services:
        await publish(services, repository, LOG)
    async with run_services(hosted, RECALL) as ungated:
        provider.is_down = True
        reply = await ungated.recall(repository, ELSEWHERE)
    assert (reply.items, reply.reason) == ([], "gate")


@pytest.mark.filterwarnings("ignore")
async def test_a_question_that_was_asked_before_is_not_embedded_again(
    apart: CommonSettings, repository: str, provider: EmbeddingProvider
) -> None:
    hosted = apart.model_copy(update={"embedder": f"litellm/{MODEL}"})
    async with run_services(hosted, GATE, WRITER, RECALL) as services:
        await publish(services, repository, LOG)
        asked_before = len(provider.texts)
        first = await services.recall(repository, ELSEWHERE)
        again = await services.recall(repository, ELSEWHERE)
        embedded = len(provider.texts) - asked_before
        provider.is_down = True
        from_memory = await services.recall(repository, ELSEWHERE)
        anew = await services.recall(repository, UNRELATED)
    assert embedded == 1
    assert first.items == again.items == from_memory.items
    assert (from_memory.degraded, anew.reason) == (False, "embedder")


# --- lessons that are near each other ---------------------------------------------------------------------------------

VERSIONS = [f"Upgrade jackson databind to 2.17.{n} in the billing service before the release." for n in (1, 2)]


async def test_another_version_replaces_nothing_and_both_are_recalled_in_one_place(
    installation: Installation, repository: str
) -> None:
    ids = [await save(installation, repository, summary) for summary in VERSIONS]
    await save(installation, repository, "The release is cut on Mondays by whoever has the pager.")
    rows = [await row_of(installation, id_) for id_ in ids]
    reply = await installation.recall(repository, "which jackson databind does billing need", limit=1, similarity_min=0)
    first, second = reply.items
    assert [row["superseded_at"] for row in rows] == [None, None]
    assert {row["variant_group"] for row in rows} == {UUID(ids[0])}
    assert {first.id, second.id} == set(ids)
    assert (first.variant_of, second.variant_of) == (None, first.id)
    assert f"variant of {first.id}] (lesson {second.id})" in reply.block


async def test_explain_lists_the_variants_of_a_lesson(installation: Installation, repository: str) -> None:
    ids = [await save(installation, repository, summary) for summary in VERSIONS]
    reply = await installation.memory.explain(ids[0], repository=repository, deadline_seconds=5)
    assert reply.lesson
    assert [(one.id, one.summary) for one in reply.lesson.variants] == [(ids[1], VERSIONS[1])]


async def test_the_same_lesson_in_other_words_replaces_the_older_where_they_are_each_others_nearest(
    installation: Installation, repository: str
) -> None:
    older = await save(installation, repository, "Pin the base image digest before you rebuild the billing container.")
    await save(installation, repository, "The release is cut on Mondays by whoever has the pager.")
    newer = await save(
        installation, repository, "Rebuild the billing container only after pinning its base image by digest, always."
    )
    assert (await row_of(installation, older))["superseded_by_id"] == UUID(newer)


async def test_a_third_variant_joins_the_group_and_its_twin_takes_its_place(
    installation: Installation, repository: str
) -> None:
    first, _ = [await save(installation, repository, summary) for summary in VERSIONS]
    third = await save(installation, repository, VERSIONS[0].replace("2.17.1", "2.17.3"))
    again = await save(installation, repository, VERSIONS[0].replace("2.17.1", "2.17.3"))
    assert (await row_of(installation, third))["superseded_by_id"] == UUID(again)
    assert (await row_of(installation, again))["variant_group"] == UUID(first)


async def test_under_the_seeds_rule_whatever_is_near_enough_is_replaced(
    uncached: Installation, repository: str
) -> None:
    await set_for_all(uncached, "memory.supersedeRule", "cosine")
    older, newer = [await save(uncached, repository, summary) for summary in VERSIONS]
    row = await row_of(uncached, older)
    assert (row["superseded_by_id"], row["variant_group"]) == (UUID(newer), None)


@pytest.mark.parametrize("rule", ["mutual", "cosine"])
async def test_a_threshold_of_one_turns_either_rule_off(uncached: Installation, repository: str, rule: str) -> None:
    await set_for_all(uncached, "memory.supersedeRule", rule)
    await set_for_all(uncached, "memory.supersedeThreshold", 1)
    older, _ = [await save(uncached, repository, VERSIONS[0]) for _ in range(2)]
    row = await row_of(uncached, older)
    assert (row["superseded_at"], row["variant_group"]) == (None, None)


async def test_what_is_told_twice_takes_one_place(installation: Installation, repository: str) -> None:
    for _ in range(8):
        await save(installation, repository, VERSIONS[0], supersede=False)
    other = await save(installation, repository, "The release is cut on Mondays by whoever has the pager.")
    reply = await installation.recall(repository, "which jackson databind", limit=2, similarity_min=0)
    assert [item.summary for item in reply.items].count(VERSIONS[0]) == 1
    assert ids_of(reply)[1:] == [other]


# --- few, not many ----------------------------------------------------------------------------------------------------


async def test_the_block_holds_whole_lessons_within_the_tokens_asked_for(
    installation: Installation, repository: str
) -> None:
    names = ("billing", "search", "mail", "export", "quota")
    for name in names:
        await save(
            installation, repository, f"The {name} service keeps its own lock on {uuid4().hex}.", supersede=False
        )
    whole = await installation.recall(repository, "which service keeps a lock", similarity_min=0)
    tokens_max = count_tokens(whole.block) - 1
    cut = await installation.recall(repository, "which service keeps a lock", similarity_min=0, tokens_max=tokens_max)
    assert (len(whole.items), whole.omitted) == (5, 0)
    assert (cut.items, cut.omitted) == (whole.items[:4], 1)
    assert count_tokens(cut.block) <= tokens_max
