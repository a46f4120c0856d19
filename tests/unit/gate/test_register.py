"""Changes of the stored patterns, as values."""

from dataclasses import replace

import pytest

from services.gate.patterns import Pattern, load_builtin_patterns
from services.gate.register import (
    PATTERNS_MAX,
    ChangeRefused,
    Registered,
    active_patterns,
    find_differences,
    find_new_faults,
    name_register,
    with_activity,
    with_added,
    with_built_in,
    without,
)

OURS = Pattern("ours", "ours", "", ("ours",), ("theirs",))
BUILTIN = load_builtin_patterns()
STORED = with_added(with_built_in({}, BUILTIN), [OURS])
FIRST = BUILTIN[0].label


def test_a_label_is_given_once() -> None:
    with pytest.raises(ChangeRefused, match="there is a pattern ours already"):
        with_added(STORED, [OURS])


def test_the_number_of_patterns_is_bounded() -> None:
    many = [replace(OURS, label=f"p{number}") for number in range(PATTERNS_MAX)]
    with pytest.raises(ChangeRefused, match="at most 500"):
        with_added(STORED, many)


def test_built_in_patterns_can_be_disabled_and_not_removed() -> None:
    with pytest.raises(ChangeRefused, match="is built in and cannot be removed: disable it"):
        without(STORED, FIRST)
    disabled = with_activity(STORED, FIRST, is_active=False)
    assert FIRST not in [pattern.label for pattern in active_patterns(disabled)]
    assert "ours" not in without(STORED, "ours")


@pytest.mark.parametrize("change", [without, lambda register, label: with_activity(register, label, is_active=True)])
def test_a_label_that_is_not_there_is_refused(change: object) -> None:
    assert callable(change)
    with pytest.raises(ChangeRefused, match="there is no pattern nobody"):
        change(STORED, "nobody")


def test_another_version_brings_changes_and_retires_its_patterns_and_keeps_what_was_disabled() -> None:
    before = with_activity(STORED, FIRST, is_active=False)
    changed = replace(BUILTIN[0], source="another")
    after = with_built_in(before, [changed, Pattern("new", "new")])
    assert set(after) == {FIRST, "new", "ours"}
    assert after[FIRST] == Registered(changed, is_built_in=True, is_active=False)
    assert after["new"].is_active


def test_an_administrators_pattern_keeps_its_label_against_a_built_in_one() -> None:
    assert with_built_in(STORED, [replace(OURS, source="theirs")])["ours"] == Registered(OURS)


def test_differences_are_named_by_what_was_done() -> None:
    after = with_activity(with_added(without(STORED, "ours"), [Pattern("new", "new")]), FIRST, is_active=False)
    assert [(found.label, found.action) for found in find_differences(STORED, after)] == sorted(
        [("new", "added"), ("ours", "removed"), (FIRST, "disabled")]
    )
    assert [found.action for found in find_differences(after, STORED) if found.label == FIRST] == ["enabled"]
    changed = {**STORED, "ours": Registered(replace(OURS, must_match=("ours!",)))}
    assert [found.action for found in find_differences(STORED, changed)] == ["changed"]
    assert find_differences(STORED, STORED) == []


def test_a_set_is_named_by_what_is_active_and_compiles() -> None:
    name = name_register(STORED)
    assert name != name_register(with_activity(STORED, "ours", is_active=False))
    assert name == name_register(with_added(STORED, [Pattern("broken", "(?=x)")]))
    assert name != name_register({**STORED, "ours": Registered(replace(OURS, severity="watch"))})


def test_a_set_that_is_bad_already_may_be_mended_step_by_step() -> None:
    bad = [Pattern(label, label, "", ("other",), ("none",)) for label in ("wrong-a", "wrong-b")]
    broken = with_added(STORED, bad)
    mended = with_activity(broken, "wrong-a", is_active=False)
    assert find_new_faults(broken, mended) == []
    assert [fault.label for fault in find_new_faults(mended, broken)] == ["wrong-a"]
