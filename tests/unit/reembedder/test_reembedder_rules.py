"""What is decided about a re-embedding."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lorebus.contracts.embedding import EmbeddingChanged

from services.reembedder.rules import (
    Decision,
    Job,
    Refuse,
    Report,
    Resume,
    Situation,
    Start,
    check_wish,
    decide,
    forecast,
    is_good_enough,
    is_milestone,
    normalise,
    split,
)

LOCAL, HOSTED = "hashing/blake2b-384", "openai/text-embedding-3-small"
JOB = Job(
    id=1, model=HOSTED, dimensions_asked=None, model_id=2, previous_model_id=None, state="running", waits_for=None,
    reason=None, actor=None, table_name=None, cursor=None, stale=1_000, stale_chars=400_000,
    usd_per_million_tokens=0.02, done=0, failed=0, skipped=0, worked_seconds=0.0, epoch=1,
)  # fmt: skip
PAUSED = replace(JOB, state="paused")


def wish(model: str, *, reembed: bool) -> EmbeddingChanged:
    return EmbeddingChanged(event_id="e", model=model, reembed=reembed)


@pytest.mark.parametrize(
    ("model", "reembed", "live", "stale", "is_serving", "decision"),
    [
        (HOSTED, False, None, 5, False, Report()),
        (HOSTED, True, None, 5, False, Start()),
        (LOCAL, False, None, 5, False, Start()),
        (LOCAL, False, None, 0, True, Report()),
        (LOCAL, False, None, 5, True, Start()),
        (HOSTED, True, None, 0, True, Refuse("nothing_stale")),
        (HOSTED, True, None, 0, False, Start()),
        (HOSTED, True, JOB, 5, False, Refuse("in_progress")),
        (HOSTED, True, PAUSED, 5, False, Resume()),
        (LOCAL, True, PAUSED, 5, False, Refuse("in_progress")),
        (LOCAL, False, replace(PAUSED, model=LOCAL), 5, False, Refuse("in_progress")),
        (HOSTED, False, JOB, 5, False, Report()),
    ],
    ids=[
        "billed and only changed", "billed and wanted", "free", "free and complete", "free and incomplete",
        "complete", "empty or kept", "one runs", "its own is paused", "another is paused",
        "a paused one is not resumed unasked", "counted beside one that runs",
    ],
)  # fmt: skip
def test_a_billed_walk_needs_a_word_and_there_is_one_at_a_time(
    model: str, reembed: bool, live: Job | None, stale: int, is_serving: bool, decision: Decision
) -> None:
    assert decide(wish(model, reembed=reembed), Situation(live, stale, is_serving)) == decision


@pytest.mark.parametrize(
    ("given_name", "name"),
    [
        ("wordllama", "wordllama/l2_supercat_256"),
        ("litellm/OpenAI/text-embedding-3-small", "openai/text-embedding-3-small"),
        ("OpenAI/text-embedding-3-small", "openai/text-embedding-3-small"),
        (LOCAL, LOCAL),
    ],
)
def test_a_model_may_be_named_as_its_setting(given_name: str, name: str) -> None:
    assert normalise(wish(given_name, reembed=True)).model == name


@pytest.mark.parametrize(("model", "is_known"), [(LOCAL, True), (HOSTED, True), ("hashing/x", False), ("gpt", False)])
def test_a_model_that_cannot_be_is_refused(model: str, is_known: bool) -> None:
    assert check_wish(wish(model, reembed=True), "default") == (None if is_known else Refuse("unknown_model"))


@pytest.mark.parametrize(
    ("done", "failed", "is_enough"),
    [(0, 0, True), (9, 1, True), (0, 1, False), (1, 1, True), (10, 2, False), (95, 5, True), (94, 6, False)],
)
def test_a_model_takes_over_unless_it_failed_on_many_rows(done: int, failed: int, is_enough: bool) -> None:
    assert is_good_enough(replace(JOB, done=done, failed=failed)) is is_enough


@given(st.lists(st.integers(), max_size=120), st.integers(min_value=1, max_value=9))
def test_parts_are_even_and_together_the_whole(items: list[int], parts_max: int) -> None:
    parts = split(items, parts_max)
    assert [item for part in parts for item in part] == items
    assert len(parts) == min(parts_max, len(items))
    assert max(map(len, parts), default=0) - min(map(len, parts), default=0) <= 1


def test_a_forecast_knows_the_rate_the_rest_and_its_cost() -> None:
    before = forecast(replace(JOB, done=450, failed=30, skipped=20, worked_seconds=10.0))
    assert (before.left, before.rows_per_second, before.seconds) == (500, 50.0, 10.0)
    assert before.tokens == 50_000
    assert before.cost_usd == pytest.approx(0.001)


def test_what_runs_here_is_free_and_what_has_no_price_is_unknown() -> None:
    assert forecast(replace(JOB, model=LOCAL)).cost_usd == 0
    assert forecast(replace(JOB, usd_per_million_tokens=None)).cost_usd is None


def test_rows_written_meanwhile_make_no_negative_rest() -> None:
    assert forecast(replace(JOB, done=1_010, worked_seconds=1.0)).left == 0


@pytest.mark.parametrize(("before", "after", "is_told"), [(900, 999, False), (999, 1_000, True), (1_950, 2_050, True)])
def test_progress_is_told_every_thousand_rows(before: int, after: int, is_told: bool) -> None:
    assert is_milestone(before, after) is is_told
