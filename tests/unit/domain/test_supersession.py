"""Which of two lessons about the same thing stands."""

from datetime import UTC, datetime, timedelta
from itertools import permutations
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from libs.common.domain.supersession import Rival, supersede

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
