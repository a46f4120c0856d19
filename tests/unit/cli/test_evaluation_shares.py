"""Counts as shares: the figures that an evaluation is judged by."""

import pytest

from cli.evaluations.bars import Bar
from cli.evaluations.shares import Share, percentile, share_of


@pytest.mark.parametrize(
    ("hits", "total", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),
        (81, 263, 0.2553, 0.3662),
        (1, 1000, 0.00018, 0.00565),
        (0, 0, 0.0, 1.0),
    ],
)
def test_the_interval_is_wilsons(hits: int, total: int, low: float, high: float) -> None:
    assert Share(hits, total).interval == pytest.approx((low, high), abs=1e-4)


def test_a_share_counts_what_is_true() -> None:
    assert share_of([True, False, True, True]) == Share(3, 4)
    assert share_of([]).value == 0


@pytest.mark.parametrize(("percent", "value"), [(0, 1), (50, 50), (99, 99), (99.5, 100), (100, 100)])
def test_a_percentile_is_the_value_that_so_many_do_not_exceed(percent: float, value: int) -> None:
    assert percentile([*range(100, 0, -1)], percent) == value


def test_a_percentile_of_nothing_is_0() -> None:
    assert percentile([], 99) == 0


@pytest.mark.parametrize(
    ("direction", "figure", "holds"),
    [("at least", 75, True), ("at least", 74.9, False), ("at most", 75, True), ("at most", 75.1, False)],
)
def test_a_bar_holds_up_to_its_limit(direction: str, figure: float, holds: bool) -> None:
    assert Bar("found", figure, direction, 75, "%").holds is holds
