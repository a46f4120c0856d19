"""What recall decides."""

from datetime import timedelta
from math import inf
from uuid import UUID

import pytest
from recalled_items import NOW, found

from libs.common.domain.calibration import Background
from libs.common.domain.relevance import gate_of_setting
from services.recall.rules import (
    EVERYTHING_PASSES,
    HELD_NOTE,
    MATCHED_NOTE,
    UNSCANNED_NOTE,
    Bars,
    Stored,
    bare_bars,
    bars_of,
    blind_bars,
    build_explained,
    build_held,
    clamp_limit,
    created_after,
    find_flagged,
    needs_screening,
    tighten,
    withhold,
    without,
)

BACKGROUND = Background(mean=0.2, sd=0.1)


@pytest.mark.parametrize(("asked", "given"), [(50, 10), (10, 10), (5, 5), (0, 1), (-1, 1)])
def test_the_limit_is_held_between_one_and_ten(asked: int, given: int) -> None:
    assert clamp_limit(asked) == given


def test_the_default_setting_stands_three_deviations_off_the_background() -> None:
    assert bars_of(0.7, BACKGROUND).cosine_min == pytest.approx(0.5)


def test_zero_lets_everything_through() -> None:
    assert bars_of(0, BACKGROUND).cosine_min == -inf


def test_the_bare_cosine_is_the_bar_of_the_seed_and_words_pass_nothing() -> None:
    assert bare_bars(0.7) == Bars(cosine_min=0.7, coverage_min=inf)
    assert bare_bars(0) == EVERYTHING_PASSES


def test_without_a_vector_the_words_alone_pass() -> None:
    assert blind_bars(0.7) == Bars(cosine_min=inf, coverage_min=pytest.approx(0.2))
    assert blind_bars(0) == EVERYTHING_PASSES


def test_without_an_age_limit_everything_is_young_enough() -> None:
    assert created_after(NOW, 0) < NOW - timedelta(days=300_000)


def test_an_age_limit_counts_days_back_from_now() -> None:
    assert created_after(NOW, 7) == NOW - timedelta(days=7)


def test_what_the_set_in_force_has_cleared_needs_no_screening() -> None:
    items = [found(1), found(2, pattern_set="p0")]
    assert [item.id.int for item in needs_screening(items, "p1")] == [2]


def test_without_a_known_set_everything_needs_screening() -> None:
    assert len(needs_screening([found(1), found(2)], None)) == 2


def test_what_the_set_in_force_was_found_to_match_needs_no_screening_and_is_flagged() -> None:
    items = [found(1, pattern_set="p0", finding_set="p1", finding_patterns=["a.b"]), found(2, pattern_set="p1")]
    assert needs_screening(items, "p1") == []
    assert find_flagged(items, "p1") == {str(UUID(int=1)): ["a.b"]}


@pytest.mark.parametrize("served", ["p2", None])
def test_what_another_set_was_found_to_match_is_screened(served: str | None) -> None:
    items = [found(1, pattern_set="p0", finding_set="p1", finding_patterns=["a.b"])]
    assert needs_screening(items, served) == items
    assert find_flagged(items, served) == {}


def test_what_is_dropped_leaves_a_gap_and_the_order() -> None:
    items = [found(1), found(2), found(3)]
    assert [item.id.int for item in without(items, {str(UUID(int=2))})] == [1, 3]


def stored(**fields: object) -> Stored:
    known = {
        "repository": "a/b",
        "summary": "s",
        "rationale": "r",
        "failure_type": None,
        "confidence": None,
        "created_at": NOW,
        "run_id": "run",
        "agent_key": "commitToMemory",
        "metadata": {"outcome": "MERGED", "evidence": {"quote": "q", "head_sha": "abc"}},
        "is_superseded": False,
        "is_consolidated": False,
    }
    return Stored(id=UUID(int=1), **(known | fields))


@pytest.mark.parametrize(
    ("is_superseded", "is_consolidated", "status"),
    [(False, False, "active"), (False, True, "consolidated"), (True, False, "superseded"), (True, True, "superseded")],
)
def test_superseded_comes_before_consolidated_before_active(
    is_superseded: bool, is_consolidated: bool, status: str
) -> None:
    assert stored(is_superseded=is_superseded, is_consolidated=is_consolidated).status == status


def test_explain_withholds_each_text_that_was_not_cleared() -> None:
    lesson = stored(merged_from=[(UUID(int=2), "source")], replaced=[(UUID(int=3), "older")])
    shown = withhold(lesson.texts(), matched={"summary", str(UUID(int=2))}, incomplete={"quote"})
    explained = build_explained(lesson, shown)
    assert explained.summary == explained.merged_from[0].summary == MATCHED_NOTE
    assert explained.evidence == {"quote": UNSCANNED_NOTE, "head_sha": "abc"}
    assert (explained.rationale, explained.replaced[0].summary) == ("r", "older")


def test_a_held_lesson_is_explained_without_any_text_of_it() -> None:
    lesson = stored(is_held=True, summary="fetch and run it", rationale="because")
    explained = build_held(lesson)
    assert (lesson.status, explained.status, explained.outcome) == ("held", "held", "MERGED")
    assert (explained.summary, explained.rationale, explained.evidence) == (HELD_NOTE, HELD_NOTE, {})


@pytest.mark.parametrize(("field", "status"), [("is_superseded", "superseded"), ("is_consolidated", "consolidated")])
def test_superseded_and_consolidated_come_before_held(field: str, status: str) -> None:
    assert stored(is_held=True, **{field: True}).status == status


@pytest.mark.parametrize("setting", [0.5, 0.7, 1.0])
def test_the_bars_of_a_scope_are_those_of_the_domain_at_its_size(setting: float) -> None:
    bars, gate = tighten(bars_of(setting, BACKGROUND), BACKGROUND, 1_000), gate_of_setting(setting, 1_000)
    assert gate
    assert (BACKGROUND.z(bars.cosine_min), bars.coverage_min) == pytest.approx((gate.z_min, gate.coverage_min))


@pytest.mark.parametrize("bars", [bare_bars(0.7), EVERYTHING_PASSES], ids=["bare cosine", "everything"])
def test_bars_that_know_no_background_are_the_same_in_any_scope(bars: Bars) -> None:
    assert tighten(bars, BACKGROUND, 1_000) == bars


def test_without_a_vector_the_words_have_to_cover_more_of_a_question_in_a_large_scope() -> None:
    bars = tighten(blind_bars(0.7), Background(mean=0.0, sd=1.0), 1_000)
    assert (bars.cosine_min, bars.coverage_min) == (inf, pytest.approx(0.3))
