import pytest

from libs.common.domain.calibration import Background
from libs.common.domain.lexical import Frequencies, weigh_terms
from libs.common.domain.relevance import (
    STRICT_FROM_SIZE,
    STRICTNESS_MAX,
    Candidate,
    gate_of_setting,
    rank_items,
    recall_items,
    strictness_of,
)

NOTHING = Frequencies(0, {})
WORDS = Frequencies(256, {"test": 90, "fail": 60})
QUIET = Background(mean=0.1, sd=0.1)


def recalled(candidates: list[Candidate[str]], terms: list[str], setting: float = 0.7, limit: int = 5) -> list[str]:
    ranked = rank_items(candidates, weigh_terms(terms, NOTHING, WORDS), QUIET)
    return [item.key for item in recall_items(ranked, gate_of_setting(setting), limit)]


def test_an_item_that_stands_out_from_the_background_passes():
    assert recalled([Candidate("near", 0.41), Candidate("far", 0.39)], []) == ["near"]


def test_an_item_that_shares_rare_words_passes_though_it_is_not_near():
    assert recalled([Candidate("a", 0.1, frozenset({"libproc"}))], ["libproc", "test", "fail"]) == ["a"]


def test_common_words_alone_do_not_pass():
    assert recalled([Candidate("a", 0.1, frozenset({"test", "fail"}))], ["libproc", "test", "fail"]) == []


def test_setting_zero_lets_everything_through_in_rank_order():
    assert recalled([Candidate("far", -0.5), Candidate("near", 0.2)], ["x"], setting=0) == ["near", "far"]


def test_a_stricter_setting_raises_both_bars():
    lenient, strict = gate_of_setting(0.6), gate_of_setting(0.85)
    assert lenient
    assert strict
    assert lenient.z_min < strict.z_min
    assert lenient.coverage_min < strict.coverage_min


def test_both_bars_are_higher_in_a_larger_scope_up_to_a_bound():
    small, larger = gate_of_setting(0.7, STRICT_FROM_SIZE), gate_of_setting(0.7, 4 * STRICT_FROM_SIZE)
    assert small == gate_of_setting(0.7)
    assert larger
    assert small
    assert (larger.z_min > small.z_min, larger.coverage_min > small.coverage_min) == (True, True)
    assert strictness_of(100_000) == STRICTNESS_MAX


def test_a_larger_scope_lets_everything_through_at_setting_zero():
    assert gate_of_setting(0, 10_000) is None


def test_the_words_decide_between_items_that_are_equally_near():
    items = [Candidate("plain", 0.5), Candidate("worded", 0.5, frozenset({"libproc"}))]
    assert recalled(items, ["libproc"]) == ["worded", "plain"]


def test_of_two_items_with_the_same_words_the_shorter_comes_first():
    items = [Candidate("long", 0.5, frozenset({"x"}), 900), Candidate("short", 0.5, frozenset({"x"}), 30)]
    assert recalled(items, ["x"]) == ["short", "long"]


def test_the_limit_cuts_after_the_gate():
    items = [Candidate(str(n), 0.5 + n / 100) for n in range(9)]
    assert recalled(items, [], limit=2) == ["8", "7"]


@pytest.mark.parametrize("size", [0, 1, 3_000])
def test_scopes_of_any_size_are_ranked(size: int):
    ranked = rank_items([Candidate(n, n / 10_000) for n in range(size)], weigh_terms(["x"], NOTHING, WORDS), QUIET)
    assert [item.key for item in ranked] == list(reversed(range(size)))


def test_without_a_background_the_words_alone_decide():
    items = [Candidate("near", 0.9), Candidate("worded", 0.0, frozenset({"libproc"}))]
    ranked = rank_items(items, weigh_terms(["libproc"], NOTHING, WORDS), None)
    assert [item.key for item in recall_items(ranked, gate_of_setting(0.7), 5)] == ["worded"]


def test_the_rank_of_an_item_does_not_depend_on_its_neighbours():
    item, weights = Candidate("a", 0.4, frozenset({"libproc"})), weigh_terms(["libproc"], NOTHING, WORDS)
    [alone] = rank_items([item], weights, QUIET)
    among = rank_items([item, *(Candidate(str(n), n / 100) for n in range(50))], weights, QUIET)
    assert alone in among
