"""Which of several values holds."""

import pytest

from libs.common.domain.setting_cascade import PLATFORM, Address, Owner, Place, Stored, read_stored, resolve
from libs.common.domain.setting_keys import (
    CHANNEL_CONTEXT_ITEMS,
    LESSON_MAX_AGE_DAYS,
    LESSON_TRANSCRIPT_EVIDENCE,
    Level,
)
from libs.common.errors import SettingRefused

OWNER = Owner(channel="C1", team="payments", organization="acme")
PLACES = {"channel": "C1", "team": "payments", "organization": "acme", "platform": ""}


def stored(**values: object) -> Stored:
    """`channel.memoryContextItems` at these levels."""
    return read_stored(
        (Address(CHANNEL_CONTEXT_ITEMS.name, level, PLACES[level]), value) for level, value in values.items()
    )


@pytest.mark.parametrize(
    ("values", "holds"),
    [
        ({"channel": 1, "team": 2, "organization": 3, "platform": 4}, (1, Place("channel", "C1"))),
        ({"team": 2, "organization": 3, "platform": 4}, (2, Place("team", "payments"))),
        ({"organization": 3, "platform": 4}, (3, Place("organization", "acme"))),
        ({"platform": 4}, (4, PLATFORM)),
        ({}, (CHANNEL_CONTEXT_ITEMS.default, None)),
    ],
    ids=["channel", "team", "organization", "platform", "built in"],
)
def test_the_nearest_level_holds(values: dict[str, object], holds: tuple[int, Place | None]) -> None:
    found = resolve(CHANNEL_CONTEXT_ITEMS, stored(**values), OWNER)
    assert (found.value, found.place) == holds


@pytest.mark.parametrize("bad", [0, 51, "7", None, True, {"value": 7}])
def test_an_invalid_value_falls_to_the_next_level(bad: object) -> None:
    known = stored(channel=bad, team=2)
    assert resolve(CHANNEL_CONTEXT_ITEMS, known, OWNER).value == 2
    assert known.faults == {Address(CHANNEL_CONTEXT_ITEMS.name, "channel", "C1")}


def test_a_value_of_somebody_else_does_not_count() -> None:
    known = stored(team=2, platform=4)
    assert resolve(CHANNEL_CONTEXT_ITEMS, known, Owner(team="search")).value == 4
    assert resolve(CHANNEL_CONTEXT_ITEMS, known).value == 4


def test_false_and_zero_are_values() -> None:
    known = read_stored(
        [
            (Address(LESSON_TRANSCRIPT_EVIDENCE.name, "team", "payments"), False),
            (Address(LESSON_MAX_AGE_DAYS.name, "team", "payments"), 0),
            (Address(LESSON_MAX_AGE_DAYS.name, "platform", ""), 30),
        ]
    )
    assert resolve(LESSON_TRANSCRIPT_EVIDENCE, known, OWNER).value is False
    assert resolve(LESSON_MAX_AGE_DAYS, known, OWNER).value == 0


@pytest.mark.parametrize(
    "address",
    [
        Address("memory.lessonMaxAge", "platform", ""),
        Address(LESSON_MAX_AGE_DAYS.name, "channel", "C1"),
        Address(LESSON_MAX_AGE_DAYS.name, "galaxy", "x"),
        Address(LESSON_MAX_AGE_DAYS.name, "team", ""),
        Address(LESSON_MAX_AGE_DAYS.name, "platform", "x"),
    ],
    ids=["unknown key", "level not allowed", "unknown level", "nameless team", "named platform"],
)
def test_a_row_that_has_no_place_counts_for_nothing(address: Address) -> None:
    assert read_stored([(address, 3)]) == Stored({}, frozenset({address}))


@pytest.mark.parametrize(("level", "name"), [("team", ""), ("platform", "x")])
def test_a_place_names_who_it_is_for(level: Level, name: str) -> None:
    with pytest.raises(SettingRefused, match="name"):
        Place(level, name)
