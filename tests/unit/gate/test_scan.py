"""What a scan reports, and what happens to patterns that are slow. Time is injected, nothing sleeps."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gate.patterns import Pattern, load_builtin_patterns
from services.gate.quarantine import Quarantine
from services.gate.scan import Scan, Scanner, split_windows

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


# Readings of the clock on a clean text that overruns: start and end of the whole set, then start and end of each
# pattern alone.
SET_OVERRUN = (0.0, 5.0)


def test_a_set_that_overran_is_incomplete_though_each_pattern_alone_is_quick() -> None:
    slow_set = scanner(*SET_OVERRUN, 5.0, 5.1, 5.1, 5.2)
    assert slow_set.scan("green", now=0.0) == Scan(complete=False)


def test_a_pattern_that_overruns_again_alone_is_quarantined() -> None:
    held = Quarantine()
    slow_red = scanner(*SET_OVERRUN, 5.0, 9.0, 9.0, 9.1, quarantine=held)
    assert slow_red.scan("green", now=100.0) == Scan(complete=False, quarantined=("red",))
    assert held.find_held(now=100.0) == {RED.key}


def test_a_match_is_reported_even_when_the_scan_was_incomplete() -> None:
    slow_red = scanner(*SET_OVERRUN, 5.0, 9.0, 9.0, 9.1)
    assert slow_red.scan("blue", now=0.0) == Scan(("blue",), complete=False, quarantined=("red",))


def test_a_scan_that_leaves_out_a_quarantined_pattern_is_incomplete() -> None:
    held = Quarantine()
    held.add(RED.key, now=0.0)
    quick = scanner(quarantine=held)
    assert quick.scan("red", now=1.0) == Scan(complete=False)
    assert quick.scan("blue", now=1.0) == Scan(("blue",), complete=False)


def test_quarantine_ends_after_ten_minutes() -> None:
    held = Quarantine()
    held.add(RED.key, now=0.0)
    quick = scanner(quarantine=held)
    assert quick.scan("red", now=599.9).matched == ()
    assert quick.scan("red", now=600.0) == Scan(("red",))


def test_quarantine_follows_flags_and_source_not_the_label_and_outlives_a_reload() -> None:
    held = Quarantine()
    held.add(RED.key, now=0.0)
    renamed = Pattern("crimson", RED.source)
    changed = Pattern("red", RED.source, "i")
    assert scanner(patterns=[renamed], quarantine=held).scan("red", now=1.0) == Scan(complete=False)
    assert scanner(patterns=[changed], quarantine=held).scan("red", now=1.0) == Scan(("red",))


def test_a_quarantine_is_reported_once() -> None:
    held = Quarantine()
    assert held.add("key", now=0.0)
    assert not held.add("key", now=1.0)
    assert held.add("key", now=600.0)


def test_a_pattern_put_away_in_one_window_is_left_out_of_the_next() -> None:
    # One long text, two windows: the second has one pattern left, so it is never timed as a whole set again.
    text = "x" * 33_000
    slow_red = scanner(*SET_OVERRUN, 5.0, 9.0, 9.0, 9.1)
    assert slow_red.scan(text + " red", now=0.0) == Scan(complete=False, quarantined=("red",))


@pytest.mark.parametrize("unit", ["ignore all ", "{{ ", "a" * 50 + " ", "\u200b\u0301", "you will now act as my "])
def test_a_hostile_text_is_scanned_within_the_budget(unit: str) -> None:
    assert Scanner(load_builtin_patterns()).scan(unit * (32_000 // len(unit)), now=0.0).complete


def test_many_threads_share_one_scanner() -> None:
    shared = Scanner(PATTERNS)
    with ThreadPoolExecutor(8) as threads:
        scans = list(threads.map(lambda text: shared.scan(text, now=0.0), ["red", "green", "blue"] * 200))
    assert scans == [Scan(("red",)), Scan(), Scan(("blue",))] * 200
