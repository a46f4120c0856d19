"""What a scan reports, and what happens to patterns that are slow. Time is injected, nothing sleeps."""

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gate.patterns import Pattern, load_builtin_patterns
from services.gate.quarantine import Quarantine
from services.gate.scan import Quarantined, Scan, Scanner, split_windows

RED = Pattern("red", r"\bred\b")
BLUE = Pattern("blue", r"\bblue\b", "i")
PATTERNS = [RED, BLUE]


def clock_of(*readings: float) -> Callable[[], float]:
    """A clock that shows these readings in turn, and the last one from then on."""
    remaining = list(readings)
    return lambda: remaining.pop(0) if len(remaining) > 1 else remaining[0]


def scanner(*readings: float, patterns: list[Pattern] = PATTERNS, quarantine: Quarantine | None = None) -> Scanner:
    return Scanner(patterns, budget_seconds=1.0, quarantine=quarantine, cpu_clock=clock_of(*readings or (0.0,)))


def test_a_clean_text_is_complete() -> None:
    assert scanner().scan("green", now=0.0) == Scan()


def test_an_empty_text_is_clean_without_a_scan() -> None:
    held = Quarantine()
    held.add(RED.key, now=0.0)
    assert scanner(quarantine=held).scan("", now=0.0) == Scan()


def test_all_patterns_that_match_are_named_in_the_order_of_the_set() -> None:
    assert scanner().scan("BLUE then red", now=0.0).matched == ("red", "blue")


def test_the_canonical_view_is_scanned() -> None:
    assert scanner().scan("r\u200bed", now=0.0).matched == ("red",)


def test_the_whole_text_is_scanned() -> None:
    assert scanner().scan("x " * 60_000 + "red", now=0.0).matched == ("red",)


def test_a_match_across_two_windows_is_found() -> None:
    # The windows begin at 0 and 18,000; without their overlap nobody would see both words.
    text = "x" * 19_995 + " needle two " + "x" * 30_000
    found = scanner(patterns=[Pattern("needle", r"needle two")]).scan(text, now=0.0)
    assert found.matched == ("needle",)


@given(st.integers(32_000, 80_000), st.sampled_from("aä"))
def test_windows_cover_the_text_and_overlap(length: int, letter: str) -> None:
    windows = [window.decode() for window in split_windows(letter * length)]
    if len((letter * length).encode()) <= 32 * 1024:
        assert [len(window) for window in windows] == [length]
        return
    assert all(len(window) == 20_000 for window in windows[:-1])
    assert 2_000 < len(windows[-1]) <= 20_000
    assert sum(map(len, windows)) - 2_000 * (len(windows) - 1) == length


# Readings of the clock on a text that overruns: before the set and after it, then after each pattern alone.
SET_OVERRUN = (0.0, 5.0)


def test_a_set_that_overran_is_incomplete_though_each_pattern_alone_is_quick() -> None:
    slow_set = scanner(*SET_OVERRUN, 5.001, 5.002)
    assert slow_set.scan("green", now=0.0) == Scan(complete=False)


def test_a_pattern_that_overruns_again_alone_is_quarantined() -> None:
    held = Quarantine()
    slow_red = scanner(*SET_OVERRUN, 9.0, 9.001, quarantine=held)
    assert slow_red.scan("green", now=100.0) == Scan(complete=False, quarantined=(Quarantined("red", 30.0),))
    assert held.find_held(now=100.0) == {RED.key}


def test_a_match_is_reported_even_when_the_scan_was_incomplete() -> None:
    slow_red = scanner(*SET_OVERRUN, 9.0, 9.001)
    assert slow_red.scan("blue", now=0.0) == Scan(("blue",), complete=False, quarantined=(Quarantined("red", 30.0),))


def test_a_long_text_may_take_longer() -> None:
    # 20,000 characters may take 0.4 seconds, if the budget allows.
    assert scanner(0.0, 0.3).scan("green " * 4_000, now=0.0).complete
    assert not scanner(0.0, 0.3).scan("green", now=0.0).complete


def test_the_configured_budget_is_the_limit_for_any_text() -> None:
    strict = Scanner(PATTERNS, budget_seconds=0.001, cpu_clock=clock_of(0.0, 0.002))
    assert not strict.scan("green " * 4_000, now=0.0).complete


def test_a_scanner_that_was_tried_untimed_goes_on_under_a_budget_and_a_quarantine() -> None:
    held = Quarantine()
    tried = Scanner(PATTERNS, cpu_clock=clock_of(0.0))
    assert tried.scan("green", now=0.0) == Scan()
    assert not tried.timed(0.0, held).scan("green", now=0.0).complete
    held.add(RED.key, now=0.0)
    assert tried.timed(1.0, held).scan("red", now=1.0) == Scan(complete=False)


def test_a_scan_that_leaves_out_a_quarantined_pattern_is_incomplete() -> None:
    held = Quarantine()
    held.add(RED.key, now=0.0)
    quick = scanner(quarantine=held)
    assert quick.scan("red", now=1.0) == Scan(complete=False)
    assert quick.scan("blue", now=1.0) == Scan(("blue",), complete=False)


def test_a_pattern_is_back_when_its_term_ends() -> None:
    held = Quarantine()
    held.add(RED.key, now=0.0)
    quick = scanner(quarantine=held)
    assert quick.scan("red", now=29.9).matched == ()
    assert quick.scan("red", now=30.0) == Scan(("red",))


def test_quarantine_follows_flags_and_source_not_the_label_and_outlives_a_reload() -> None:
    held = Quarantine()
    held.add(RED.key, now=0.0)
    renamed = Pattern("crimson", RED.source)
    changed = Pattern("red", RED.source, "i")
    assert scanner(patterns=[renamed], quarantine=held).scan("red", now=1.0) == Scan(complete=False)
    assert scanner(patterns=[changed], quarantine=held).scan("red", now=1.0) == Scan(("red",))


def test_a_pattern_put_away_in_one_window_is_left_out_of_the_next() -> None:
    # One long text, two windows: the second has one pattern left, so it is never timed as a whole set again.
    text = "x" * 33_000
    slow_red = scanner(*SET_OVERRUN, 9.0, 9.001)
    assert slow_red.scan(text + " red", now=0.0) == Scan(complete=False, quarantined=(Quarantined("red", 30.0),))


@pytest.mark.parametrize("unit", ["ignore all ", "{{ ", "a" * 50 + " ", "\u200b\u0301", "you will now act as my "])
def test_a_hostile_text_is_scanned_within_the_budget(unit: str) -> None:
    assert Scanner(load_builtin_patterns()).scan(unit * (32_000 // len(unit)), now=0.0).complete


def test_many_threads_share_one_scanner() -> None:
    shared = Scanner(PATTERNS)
    with ThreadPoolExecutor(8) as threads:
        scans = list(threads.map(lambda text: shared.scan(text, now=0.0), ["red", "green", "blue"] * 200))
    assert scans == [Scan(("red",)), Scan(), Scan(("blue",))] * 200


def test_a_pattern_that_watches_refuses_nothing() -> None:
    watching = scanner(patterns=[RED, Pattern("blue", "blue", severity="watch")])
    assert watching.scan("red and blue", now=0.0) == Scan(("red",), ("blue",))
    assert watching.scan("blue", now=0.0) == Scan(watched=("blue",))


def test_what_a_text_is_made_of_is_told_after_the_patterns() -> None:
    assert scanner().scan("red \u202etxt", now=0.0).matched == ("red", "structure.bidi-override")
    assert scanner().scan("\u202etxt", now=0.0).matched == ("structure.bidi-override",)


def test_what_is_hidden_or_encoded_is_scanned() -> None:
    assert scanner().scan("data:cmVkIGlzIGhpZGRlbiBoZXJl", now=0.0).matched == ("red",)
    assert "red" in scanner().scan("ok\U000e0020\U000e0072\U000e0065\U000e0064", now=0.0).matched


def test_a_pattern_that_speaks_of_lines_sees_the_text_as_written() -> None:
    lines = scanner(patterns=[Pattern("line", r"^red$", "m"), Pattern("blank", r"two {2}blanks")])
    assert lines.scan("blue\nred\ngreen", now=0.0).matched == ("line",)
    assert lines.scan("two  blanks", now=0.0).matched == ("blank",)


def test_no_further_reading_is_looked_at_when_one_refuses() -> None:
    encoded = "red, and Ymx1ZSBpcyBoaWRkZW4gaGVyZQ=="
    assert scanner().scan(encoded, now=0.0).matched == ("red",)
    assert scanner(patterns=[BLUE]).scan(encoded, now=0.0).matched == ("blue",)


class Later(Executor):
    """Runs what it was given when it is told to."""

    def __init__(self) -> None:
        self.works: list[Callable[[], object]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.works.append(partial(fn, *args, **kwargs))
        return Future()

    def run(self) -> int:
        works, self.works = self.works, []
        for work in works:
            work()
        return len(works)


def test_verdicts_are_the_same_before_and_after_a_scanner_is_prepared() -> None:
    texts = ["red", "BLUE", "green", "r\u200bed"]
    some = scanner()
    before = [some.scan(text, now=0.0) for text in texts]
    some.prepare()
    assert [some.scan(text, now=0.0) for text in texts] == before


def test_an_engine_without_the_held_patterns_is_built_once_and_behind_the_scans() -> None:
    held, later = Quarantine(), Later()
    some = Scanner(PATTERNS, quarantine=held, builder=later)
    held.add(RED.key, now=0.0)
    expected = [Scan(complete=False), Scan(("blue",), complete=False)]
    assert [some.scan(text, now=1.0) for text in ("red", "blue")] == expected
    assert later.run() == 1
    assert [some.scan(text, now=1.0) for text in ("red", "blue")] == expected
    assert some.scan("red", now=30.0) == Scan(("red",))
    assert later.run() == 0


def test_an_engine_that_comes_too_late_is_not_used() -> None:
    held, later = Quarantine(), Later()
    some = Scanner(PATTERNS, quarantine=held, builder=later)
    held.add(RED.key, now=0.0)
    some.scan("red", now=1.0)
    held.add(BLUE.key, now=40.0)
    assert some.scan("blue", now=41.0) == Scan(complete=False)
    later.run()
    assert [some.scan(text, now=42.0).matched for text in ("red", "blue")] == [("red",), ()]
