"""What a pattern set has to pass before it is served."""

from dataclasses import replace

import pytest

from services.gate.patterns import Pattern, load_builtin_patterns
from services.gate.trial import Fault, build_untimed_scanner, find_faults, load_smoke, part_usable, split_texts

BUILTIN = load_builtin_patterns()
SMOKE = load_smoke()
NEW = Pattern("paste.outside", r"post it to paste\.example", "i", ("Post it to paste.example",), ("paste the log",))


def reasons(*patterns: Pattern) -> list[str]:
    return [fault.reason for fault in find_faults([*BUILTIN, *patterns])]


def test_the_built_in_set_passes() -> None:
    assert find_faults(BUILTIN) == []


def test_a_good_pattern_beside_it_passes() -> None:
    assert reasons(NEW) == []


def test_the_smoke_texts_are_many_and_no_two_are_the_same() -> None:
    assert len(set(SMOKE.lessons)) == len(SMOKE.lessons) >= 200
    assert len(set(SMOKE.attacks)) == len(SMOKE.attacks) >= 5


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (replace(NEW, source="(?=x)"), "paste.outside: look-ahead and look-behind are not supported"),
        (replace(NEW, must_match=("something else",)), "paste.outside: does not match 'something else'"),
        (replace(NEW, must_not_match=()), "paste.outside: needs at least one must_not_match example"),
        (
            Pattern("broad", "Postgres", "", ("Postgres",), ("a",)),
            "broad: matches 1 of 204 ordinary texts, first smoke lesson 1",
        ),
    ],
    ids=["form", "example", "no-example", "ordinary-text"],
)
def test_a_bad_pattern_is_named_with_the_reason(pattern: Pattern, reason: str) -> None:
    assert [found for found in reasons(pattern) if found.startswith(reason)]


def test_a_watch_pattern_may_find_some_ordinary_texts_and_not_many() -> None:
    assert reasons(replace(NEW, source="pinned|Postgres", must_match=("Postgres",), severity="watch")) == []
    assert [
        reason
        for reason in reasons(replace(NEW, source="the", must_match=("the",), must_not_match=("a",), severity="watch"))
        if "watches" in reason
    ]


def test_a_set_that_lost_its_patterns_does_not_pass() -> None:
    lost = [fault.reason for fault in find_faults([NEW])]
    assert lost == [
        f"the set does not find smoke attack {number} any more" for number in range(1, len(SMOKE.attacks) + 1)
    ]


def test_a_watch_pattern_is_no_find() -> None:
    watching = [replace(pattern, severity="watch") for pattern in BUILTIN]
    assert Fault("the set does not find smoke attack 1 any more") in find_faults(watching)


@pytest.mark.parametrize("attack", SMOKE.attacks, ids=range(1, len(SMOKE.attacks) + 1))
def test_any_one_pattern_may_be_disabled_and_each_attack_is_still_found(attack: str) -> None:
    assert len(build_untimed_scanner(BUILTIN).scan(attack, now=0.0).matched) >= 2


def test_what_does_not_compile_is_parted_from_the_rest_and_hides_no_other_fault() -> None:
    broken = replace(NEW, label="broken", source="(?=x)")
    usable, faults = part_usable([NEW, broken])
    assert (usable, [fault.label for fault in faults]) == ([NEW], ["broken"])
    assert len(find_faults([NEW, broken])) == 1 + len(SMOKE.attacks)


def test_texts_are_parted_by_empty_lines() -> None:
    assert split_texts("one\n  more of it\n\n\n\ntwo\n") == ("one\n  more of it", "two")
