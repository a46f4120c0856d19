"""What holds for a question: what it says, else what is set, else what is built in."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from lorebus.contracts.recall import RecallRequest

from libs.common.domain.setting_cascade import NOBODY, Address, Owner, Stored, read_stored
from services.recall.limits import Limits, choose_limits

NOW = datetime(2026, 11, 30, tzinfo=UTC)
EVER = datetime(1, 1, 1, tzinfo=UTC)
TEAM = Owner(team="payments", organization="acme")


def stored(**values: object) -> Stored:
    return read_stored((Address(name, "platform", ""), value) for name, value in values.items())


def limits(known: Stored, owner: Owner = NOBODY, **asked: Any) -> Limits:
    where = {} if {"channel", "project"} & asked.keys() else {"repository": "a/b"}
    return choose_limits(RecallRequest(**({"query": "x"} | where | asked)), known, owner, NOW)


def aged(level: str, name: str, days: int) -> Stored:
    return read_stored([(Address("memory.lessonMaxAgeDays", level, name), days)])


def test_without_settings_the_built_in_limits_hold() -> None:
    assert limits(stored()) == Limits(items_max=5, similarity_min=0.7, created_after=EVER)


def test_what_is_set_holds_where_the_question_does_not_say() -> None:
    found = limits(stored(lessonRetrievalLimit=2, lessonRetrievalThreshold=0.4))
    assert (found.items_max, found.similarity_min) == (2, 0.4)


def test_what_the_question_says_goes_before_what_is_set() -> None:
    found = limits(stored(lessonRetrievalLimit=2, lessonRetrievalThreshold=0.4), limit=7, similarity_min=0)
    assert (found.items_max, found.similarity_min) == (7, 0)


@pytest.mark.parametrize(("asked", "given"), [(50, 10), (0, 1)])
def test_the_limit_is_held_between_one_and_ten(asked: int, given: int) -> None:
    assert limits(stored(), limit=asked).items_max == given


@pytest.mark.parametrize(("level", "name"), [("team", "payments"), ("organization", "acme"), ("platform", "")])
def test_lessons_age_by_the_setting_of_who_owns_the_repository(level: str, name: str) -> None:
    assert limits(aged(level, name, 30), TEAM).created_after == NOW - timedelta(days=30)


def test_who_asks_does_not_change_how_lessons_age() -> None:
    assert limits(aged("team", "payments", 30), NOBODY, team_id="payments").created_after == EVER


@pytest.mark.parametrize("scope", ["channel", "project"])
def test_only_lessons_age(scope: str) -> None:
    assert limits(aged("platform", "", 30), TEAM, **{scope: "C1"}).created_after == EVER


@pytest.mark.parametrize(("asked", "tier_min"), [(None, 0), (0, 0), (2, 2)])
def test_without_a_least_tier_every_tier_is_good_enough(asked: int | None, tier_min: int) -> None:
    assert limits(stored(), min_tier=asked).tier_min == tier_min


class TestChannels:
    OWNER = Owner(channel="acme/C1", team="payments", organization="acme")

    def test_a_channel_has_bars_and_numbers_of_its_own(self) -> None:
        assert limits(stored(), channel="C1") == Limits(items_max=5, similarity_min=0.65, created_after=EVER)
        assert limits(stored(), channel="C1", query="*").items_max == 15
        assert limits(stored(), channel="C1", limit=70).items_max == 50

    @pytest.mark.parametrize(
        ("level", "name"), [("channel", "acme/C1"), ("team", "payments"), ("organization", "acme")]
    )
    def test_what_is_set_for_the_channel_or_its_owners_holds(self, level: str, name: str) -> None:
        known = read_stored(
            [
                (Address("channel.memoryThreshold", level, name), 0.8),
                (Address("channel.memoryContextItems", level, name), 20),
            ]
        )
        found = limits(known, self.OWNER, channel="C1", org_id="acme")
        assert (found.similarity_min, found.items_max) == (0.8, 20)
        assert limits(known, NOBODY, channel="C1").similarity_min == 0.65
