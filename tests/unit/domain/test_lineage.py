"""What a delete takes along and what it brings back: the walk of spec 7, on graphs of every kind."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.common.domain.lineage import ROUNDS_MAX, Forgetting, Item, Lineage, LineageTooDeep, plan_forgetting


def id_of(number: int) -> UUID:
    return UUID(int=number)


def lineage_of(merges: dict[int, set[int]], superseded: dict[int, int] | None = None, count: int = 10) -> Lineage:
    """Memories 1 to `count`, of which these are merges, and these superseded by that one."""
    replaced = superseded or {}
    consolidated = {source for sources in merges.values() for source in sources}
    items = {
        id_of(n): Item(
            id_of(n),
            superseded_by=id_of(replaced[n]) if n in replaced else None,
            is_superseded=n in replaced,
            is_consolidated=n in consolidated,
        )
        for n in range(1, count + 1)
    }
    return Lineage(items, {id_of(merge): set(map(id_of, sources)) for merge, sources in merges.items()})


def numbers(ids: object) -> list[int]:
    return [id_.int for id_ in ids]  # type: ignore[attr-defined]


def plan(lineage: Lineage, *targets: int) -> Forgetting:
    return plan_forgetting(lineage, map(id_of, targets))


def test_a_deleted_source_takes_its_merge_along_and_restores_the_others() -> None:
    found = plan(lineage_of({4: {1, 2, 3}}), 2)
    assert (numbers(found.deleted), numbers(found.restored)) == ([2, 4], [1, 3])
    assert numbers(found.reactivated) == [1, 3]


def test_merges_of_merges_go_too_and_give_back_what_they_held() -> None:
    found = plan(lineage_of({3: {1, 2}, 5: {3, 4}}), 1)
    assert (numbers(found.deleted), numbers(found.restored)) == ([1, 3, 5], [2, 4])


def test_a_deleted_merge_takes_its_sources_along_and_restores_none() -> None:
    found = plan(lineage_of({3: {1, 2}}), 3)
    assert (numbers(found.deleted), numbers(found.restored)) == ([3, 1, 2], [])


def test_a_source_that_another_merge_still_stands_for_stays_hidden() -> None:
    found = plan(lineage_of({4: {1, 2}, 5: {2, 3}}), 1)
    assert (numbers(found.deleted), numbers(found.restored)) == ([1, 4], [])


def test_what_a_deleted_memory_had_superseded_comes_back() -> None:
    found = plan(lineage_of({}, {1: 2, 2: 3}), 2)
    assert (numbers(found.deleted), numbers(found.unsuperseded), numbers(found.reactivated)) == ([2], [1], [1])


def test_a_newer_memory_that_superseded_the_target_is_not_touched() -> None:
    found = plan(lineage_of({}, {1: 2}), 1)
    assert (numbers(found.deleted), found.restored) == ([1], [])


def test_a_row_back_from_a_merge_that_is_still_superseded_is_reported_restored_and_stays_hidden() -> None:
    found = plan(lineage_of({4: {1, 2}}, {2: 5}), 1)
    assert (numbers(found.restored), numbers(found.reactivated)) == ([2], [])


def test_a_row_that_a_merge_and_a_deleted_memory_hid_is_restored_once() -> None:
    found = plan(lineage_of({4: {1, 2}}, {2: 1}), 1)
    assert (numbers(found.restored), numbers(found.reactivated)) == ([2], [2])


def test_no_targets_and_unknown_ones_delete_nothing() -> None:
    assert plan(lineage_of({4: {1, 2}})) == plan(lineage_of({4: {1, 2}}), 99) == Forgetting([], [], [], [])


def test_the_targets_come_first_each_once_in_the_order_given() -> None:
    found = plan(lineage_of({4: {1, 2}}), 7, 1, 7, 5)
    assert numbers(found.deleted) == [7, 1, 5, 4]


@pytest.mark.parametrize(("depth", "is_whole"), [(ROUNDS_MAX, True), (ROUNDS_MAX + 1, False)])
def test_a_walk_follows_so_many_rounds_and_never_leaves_a_part_behind(depth: int, is_whole: bool) -> None:
    lineage = lineage_of({n + 1: {n} for n in range(1, depth + 1)}, count=depth + 1)
    if is_whole:
        assert len(plan(lineage, 1).deleted) == len(plan(lineage, depth + 1).deleted) == depth + 1
        return
    for target in (1, depth + 1):
        with pytest.raises(LineageTooDeep):
            plan(lineage, target)


@dataclass(frozen=True)
class Case:
    lineage: Lineage
    targets: list[UUID]


@st.composite
def cases(draw: Callable[..., object]) -> Case:
    """Merges only of older memories, as they are made; superseded by any other one, as it may happen."""
    count = draw(st.integers(1, 12))
    members = st.integers(1, count)
    merges = {}
    for n in range(2, count + 1):
        if draw(st.booleans()):
            merges[n] = draw(st.sets(st.integers(1, n - 1), min_size=1, max_size=4))
    superseded = draw(st.dictionaries(members, members, max_size=count))
    replaced = {n: by for n, by in superseded.items() if n != by}
    targets = draw(st.lists(st.integers(1, count + 2), max_size=4))
    return Case(lineage_of(merges, replaced, count), list(map(id_of, targets)))


@given(cases())
def test_what_is_deleted_is_closed_no_merge_of_a_deleted_memory_stays(case: Case) -> None:
    gone = set(plan_forgetting(case.lineage, case.targets).deleted)
    for merge, sources in case.lineage.sources.items():
        assert merge in gone or not gone & set(sources)


@given(cases())
def test_the_sources_of_a_target_go_with_it_whatever_their_depth(case: Case) -> None:
    gone = set(plan_forgetting(case.lineage, case.targets).deleted)
    reached = [target for target in case.targets if target in case.lineage.items]
    while reached:
        one = reached.pop()
        assert one in gone
        reached.extend(case.lineage.sources.get(one, ()))


@given(cases())
def test_nothing_is_deleted_that_no_target_leads_to(case: Case) -> None:
    """Each deleted one is a target, a source of a target at some depth, or a merge of a deleted one."""
    gone = plan_forgetting(case.lineage, case.targets).deleted
    below = {target for target in case.targets if target in case.lineage.items}
    edge = set(below)
    while edge := {source for one in edge for source in case.lineage.sources.get(one, ())} - below:
        below |= edge
    for one in gone:
        assert one in below or set(case.lineage.sources.get(one, ())) & set(gone)


@given(cases())
def test_what_the_delete_hid_comes_back(case: Case) -> None:
    """Whatever was hidden by deleted memories alone is active afterwards, and nothing else changes its state."""
    found = plan_forgetting(case.lineage, case.targets)
    gone = set(found.deleted)
    merges_of = {
        id_: {merge for merge, sources in case.lineage.sources.items() if id_ in sources} for id_ in case.lineage.items
    }
    for id_, item in case.lineage.items.items():
        if id_ in gone:
            assert id_ not in found.restored
            continue
        was_merged_away, stands = bool(merges_of[id_]), bool(merges_of[id_] - gone)
        is_replaced = item.superseded_by is not None and item.superseded_by not in gone
        is_active_after = not (was_merged_away and stands) and not is_replaced
        assert (item.is_active or id_ in found.reactivated) == is_active_after


@given(cases())
def test_a_source_that_a_surviving_merge_lists_is_never_revived(case: Case) -> None:
    found = plan_forgetting(case.lineage, case.targets)
    surviving = [sources for merge, sources in case.lineage.sources.items() if merge not in found.deleted]
    listed = {source for sources in surviving for source in sources}
    assert not listed & set(found.unconsolidated)
    assert not listed & set(found.reactivated)


@given(cases())
def test_forgetting_the_same_again_finds_nothing_more(case: Case) -> None:
    found = plan_forgetting(case.lineage, case.targets)
    left = {id_: item for id_, item in case.lineage.items.items() if id_ not in found.deleted}
    sources = {merge: ids for merge, ids in case.lineage.sources.items() if merge in left}
    assert plan_forgetting(Lineage(left, sources), case.targets).deleted == []
