"""What an answer holds of what was found."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recalled_items import found

from services.recall.choosing import VARIANTS_MAX, choose_items, drop_repeats, find_variants, may_hide_more
from services.recall.rules import Found

GROUP = UUID(int=99)


def numbers(items: list[Found]) -> list[int]:
    return [item.id.int for item in items]


@pytest.mark.parametrize(("limit", "of_one_run"), [(1, 1), (2, 1), (3, 2), (5, 2), (10, 4)])
def test_one_run_takes_no_more_than_two_places_of_five(limit: int, of_one_run: int) -> None:
    of_run = [found(number, run_id="one") for number in range(20)]
    others = [found(number, run_id=f"other-{number}") for number in range(20, 40)]
    kept = choose_items([*of_run, *others], limit)
    assert [item.run_id for item in kept].count("one") == of_one_run
    assert len(kept) == limit


def test_capped_items_keep_their_order() -> None:
    items = [found(number, run_id="one" if number < 4 else f"r{number}") for number in range(7)]
    assert numbers(choose_items(items, 5)) == [0, 1, 4, 5, 6]


def test_items_without_a_run_are_not_capped() -> None:
    assert len(choose_items([found(number, run_id=None) for number in range(9)], 5)) == 5


def test_a_variant_comes_along_and_takes_no_place() -> None:
    items = [found(number, run_id=None, variant_group=GROUP if number in (0, 3) else None) for number in range(6)]
    assert numbers(choose_items(items, 3)) == [0, 1, 2, 3]


def test_of_many_variants_no_more_come_than_show_what_differs() -> None:
    items = [found(number, run_id=None, variant_group=GROUP) for number in range(9)]
    assert numbers(choose_items(items, 5)) == list(range(1 + VARIANTS_MAX))


def test_a_variant_of_what_found_no_place_finds_none_either() -> None:
    items = [found(1, run_id=None), found(2, run_id=None, variant_group=GROUP), found(3, variant_group=GROUP)]
    assert numbers(choose_items(items, 1)) == [1]


def test_an_item_that_says_what_one_before_it_says_is_left_out() -> None:
    items = [found(1, summary="Pin  the\nimage."), found(2, summary="pin the image."), found(3, summary="Pin it.")]
    assert numbers(drop_repeats(items, "swe-lessons")) == [1, 3]


def test_of_items_that_say_the_same_the_most_trusted_stands_in_the_first_place() -> None:
    items = [found(1, summary="same", tier=0), found(2, summary="other"), found(3, summary="same", tier=2)]
    assert numbers(drop_repeats(items, "swe-lessons")) == [3, 2]


def test_entries_that_say_the_same_are_each_their_writers_own() -> None:
    items = [found(1, summary="same"), found(2, summary="same")]
    assert drop_repeats(items, "agent-memory") == items


def test_a_longer_look_is_worth_it_where_places_are_free_or_a_variant_may_stand_further_down() -> None:
    plain, variant = [found(1), found(2)], [found(1), found(2, variant_group=GROUP)]
    assert not may_hide_more(plain, plain)
    assert may_hide_more(plain, plain[:1])
    assert may_hide_more(variant, variant)


def test_a_variant_is_named_after_the_first_of_its_group_that_is_shown() -> None:
    first, second, other = found(1, variant_group=GROUP), found(2, variant_group=GROUP), found(3)
    assert find_variants([first, other, second]) == {str(second.id): str(first.id)}
    assert find_variants([second, other]) == {}


GROUPS = st.sampled_from([None, UUID(int=91), UUID(int=92)])


@given(st.lists(GROUPS, max_size=30), st.integers(min_value=1, max_value=10))
def test_the_limit_counts_lessons_and_the_order_stays(groups: list[UUID | None], limit: int) -> None:
    items = [found(number, run_id=None, variant_group=group) for number, group in enumerate(groups)]
    chosen = choose_items(items, limit)
    assert numbers(chosen) == sorted(numbers(chosen))
    assert len(chosen) - len(find_variants(chosen)) == min(
        limit, len({item.variant_group or item.id for item in items})
    )
