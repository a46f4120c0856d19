"""What the writer decides."""

from datetime import UTC, datetime, timedelta
from itertools import permutations
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lorebus.contracts.runs import RunFinished

from services.writer.evidence import Evidence
from services.writer.rules import Draft, Rival, Skip, distil, evidence_time, mask_run, origin_tier, supersede

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
TOKEN = "ghp_hTu7Q1xSRiQxUhwmPFo9Qjs1pt0uTG4QUanL"


def run_of(**fields: object) -> RunFinished:
    return RunFinished.model_validate({"run_id": "r", "repository": "a/b", "outcome": "CI_FAILED"} | fields)


def rival(number: int, *, hours: float = 0, tier: int = 2) -> Rival:
    return Rival(UUID(int=number), NOW + timedelta(hours=hours), f"event-{number}", tier)


def test_credentials_are_masked_before_anything_reads_the_run() -> None:
    run = run_of(
        attempts=[{"kind": "ci", "log_tail": f"export GITHUB_TOKEN={TOKEN}\nError: push failed"}],
        ticket={"title": f"use {TOKEN}"},
        change={"files": [{"path": "a.py"}], "implementation_notes": f"token is {TOKEN}"},
    )
    assert TOKEN not in mask_run(run).model_dump_json()


def test_masking_leaves_what_is_no_secret_as_it_was() -> None:
    run = run_of(
        pull_requests=[{"number": 3, "head_sha": "0123456789abcdef0123456789abcdef01234567"}],
        change={"files": [{"path": "tests/test_token.py"}], "tests": {"failing": 1, "passing": 40, "passed": False}},
        attempts=[{"kind": "ci", "seq": 4, "attempt": 2, "activity_id": "9", "log_tail": "Error: no"}],
    )
    assert mask_run(run) == run


def test_a_run_becomes_a_draft_with_the_words_that_find_it() -> None:
    draft = distil(run_of(attempts=[{"kind": "ci", "log_tail": "Error: Cannot find module 'left-pad'\nexit 1"}]))
    assert isinstance(draft, Draft)
    assert {"left", "pad", "modul"} & set(draft.terms)
    assert draft.texts()["lesson"] == f"{draft.lesson.summary}\n\n{draft.lesson.rationale}"


def test_a_clean_merge_timeout_becomes_a_skip() -> None:
    assert distil(run_of(outcome="MERGE_TIMED_OUT")) == Skip("merge_timed_out_without_rejection")


@pytest.mark.parametrize(
    ("evidence", "tier"),
    [
        (Evidence("CI_FAILED", ci_failure="Error"), 2),
        (Evidence("REVIEW_FAILED", rejection="[security] no"), 2),
        (Evidence("COMPLETED"), 1),
    ],
)
def test_the_tier_comes_from_the_kind_of_evidence(evidence: Evidence, tier: int) -> None:
    assert origin_tier(evidence) == tier


def test_evidence_is_as_old_as_the_run_says() -> None:
    assert evidence_time(NOW - timedelta(days=3), NOW) == NOW - timedelta(days=3)


def test_the_brokers_time_stands_in_for_a_missing_one() -> None:
    assert evidence_time(None, NOW) == NOW


def test_nobody_speaks_for_the_future() -> None:
    assert evidence_time(NOW + timedelta(days=900), NOW) == NOW


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
