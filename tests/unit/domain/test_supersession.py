"""Which of two lessons about the same thing stands."""

from datetime import UTC, datetime, timedelta
from itertools import permutations
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.common.domain.calibration import Background
from libs.common.domain.supersession import (
    Nearness,
    Neighbour,
    Relations,
    Rival,
    nearness_of,
    relate_nearest,
    relate_twins,
    supersede,
)

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def rival(number: int, *, hours: float = 0, tier: int = 2) -> Rival:
    return Rival(UUID(int=number), NOW + timedelta(hours=hours), f"event-{number}", tier)


def test_a_newer_lesson_replaces_all_older_ones_near_it() -> None:
    assert supersede(rival(3, hours=2), [rival(2), rival(1)]).replaced == (UUID(int=1), UUID(int=2))


def test_a_late_lesson_is_replaced_by_the_newest_that_came_before_it() -> None:
    decision = supersede(rival(1), [rival(2, hours=1), rival(3, hours=2)])
    assert (decision.replaced, decision.replaced_by) == ((), UUID(int=3))


def test_a_lower_tier_never_replaces_a_higher_one() -> None:
    assert supersede(rival(2, hours=1, tier=1), [rival(1, tier=2)]).replaced == ()
    assert supersede(rival(1, tier=2), [rival(2, hours=1, tier=1)]).replaced_by is None


def test_a_more_trusted_lesson_is_confirmed_by_newer_evidence_alone() -> None:
    assert supersede(rival(2, hours=1, tier=1), [rival(1, tier=2)]).confirmed == (UUID(int=1),)
    assert supersede(rival(2, tier=1), [rival(1, hours=1, tier=2)]).confirmed == ()
    assert supersede(rival(2, hours=1), [rival(1)]).confirmed == ()


def test_a_lesson_with_nothing_near_it_replaces_nothing() -> None:
    decision = supersede(rival(1), [])
    assert (decision.replaced, decision.replaced_by) == ((), None)


def replay(arrivals: tuple[Rival, ...]) -> set[UUID]:
    """Which of these near twins are active after they arrived in this order."""
    active: dict[UUID, Rival] = {}
    for new in arrivals:
        decision = supersede(new, list(active.values()))
        for replaced in decision.replaced:
            del active[replaced]
        if decision.replaced_by is None:
            active[new.id] = new
    return set(active)


@given(st.lists(st.integers(min_value=0, max_value=5), min_size=1, max_size=4))
def test_the_order_of_arrival_changes_nothing(hours: list[int]) -> None:
    rivals = [rival(number, hours=hour) for number, hour in enumerate(hours)]
    newest = max(rivals, key=lambda one: one.age_order).id
    assert all(replay(order) == {newest} for order in permutations(rivals))


BACKGROUND = Background(mean=0.1, sd=0.1)
GROUP = UUID(int=99)


def neighbour(number: int, summary: str, similarity: float = 0.9, group: UUID | None = None) -> Neighbour:
    return Neighbour(rival(number), summary, similarity, group)


@pytest.mark.parametrize("setting", [0, 0.5, 0.92, 1])
def test_under_the_seeds_rule_the_setting_is_the_cosine(setting: float) -> None:
    assert nearness_of("cosine", setting, BACKGROUND) == Nearness("cosine", setting)


def test_the_mutual_rule_reads_the_setting_by_the_models_own_scale() -> None:
    assert nearness_of("mutual", 0.92, BACKGROUND).similarity_min == pytest.approx(0.7)
    assert nearness_of("mutual", 0.46, BACKGROUND).similarity_min == pytest.approx(0.4)


@pytest.mark.parametrize("rule", ["mutual", "cosine"])
def test_one_turns_either_rule_off(rule: str) -> None:
    assert nearness_of(rule, 1, BACKGROUND).is_off


def test_a_wide_background_turns_nothing_off() -> None:
    assert not nearness_of("mutual", 0.92, Background(mean=0.5, sd=0.2)).is_off


def test_the_same_text_is_a_twin_though_others_are_as_near() -> None:
    near = [neighbour(1, "Pin the image."), neighbour(2, "Pin  the IMAGE."), neighbour(3, "Pin it.", 1.0)]
    twins = relate_twins("pin the image.", near)
    assert twins
    assert [one.id.int for one in twins.rivals] == [1, 2]
    assert relate_twins("Pin the base image.", near) is None


def test_of_two_that_are_each_others_nearest_the_newer_replaces_the_older() -> None:
    nearest = neighbour(1, "The linter rejects long lines.")
    related = relate_nearest("Lines over the limit are turned down by the style check.", nearest, 0.5)
    assert related == Relations([nearest.rival])


def test_one_that_is_nearer_to_another_is_left_alone() -> None:
    nearest = neighbour(1, "The linter rejects long lines.", 0.8)
    assert relate_nearest("Lines over the limit are turned down by the style check.", nearest, 0.85) == Relations()


def test_variants_stay_both_and_are_a_group_named_by_its_first() -> None:
    first = relate_nearest("Upgrade jackson to 8.5.76.", neighbour(1, "Upgrade jackson to 8.5.75."), 0.2)
    assert first == Relations(variant_of=UUID(int=1), variant_group=UUID(int=1))
    further = relate_nearest("Upgrade jackson to 8.5.77.", neighbour(2, "Upgrade jackson to 8.5.76.", 0.9, GROUP), 0.9)
    assert further == Relations(variant_of=UUID(int=2), variant_group=GROUP)


def test_what_replaces_a_variant_takes_its_place_in_the_group() -> None:
    twins = relate_twins("Pin it.", [neighbour(1, "Pin it.", 1.0, GROUP)])
    nearest = relate_nearest(
        "Lines over the limit are turned down by the style check.", neighbour(1, "The linter complains.", 0.9, GROUP), 0
    )
    assert twins
    assert (twins.variant_group, nearest.variant_group) == (GROUP, GROUP)
