"""Spec 4.5 and the history cases of spec 12."""

from typing import Any

from lorebus.contracts.runs import RunFinished

from services.writer.evidence.bounds import TEXT_CHARS_MAX
from services.writer.evidence.collection import build_evidence, citation
from services.writer.evidence.history import ENTRY_CHARS_MAX, ROWS_MAX, History, build_history


def run(*attempts: Any, outcome: str = "MERGED", **fields: Any) -> RunFinished:
    return RunFinished.model_validate(
        {"run_id": "r1", "repository": "acme/shop", "outcome": outcome, "attempts": list(attempts), **fields}
    )


def ci(log: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "ci", "log_tail": log, **fields}


def review(text: str, *, reviewer: str = "QA", approved: bool = False, **fields: Any) -> dict[str, Any]:
    verdict = {"reviewer": reviewer, "approved": approved, "findings": [{"text": text}]}
    return {"kind": "review", "verdicts": [verdict], **fields}


def history_of(*attempts: Any) -> History:
    history = build_history(run(*attempts))
    assert history is not None
    return history


def logs_of(history: History) -> list[tuple[int, str]]:
    return [(entry.number, entry.text) for entry in history.ci_failures.entries]


def rejections_of(history: History) -> list[str]:
    return [entry.text for entry in history.rejections.entries]


def test_attempts_are_told_in_the_order_in_which_they_happened():
    first, second = "2026-11-01T10:00:00Z", "2026-11-01T11:00:00Z"
    history = history_of(
        ci("third", at=second, seq=2), ci("first", at=first, seq=9), ci("second", at=second, seq=1), review("no")
    )
    assert logs_of(history) == [(1, "first"), (2, "second"), (3, "third")]
    assert rejections_of(history) == ["[QA] no"]


def test_where_a_time_is_missing_the_sequence_decides():
    assert logs_of(history_of(ci("b", seq=2, at="2026-11-01T10:00:00Z"), ci("a", seq=1))) == [(1, "a"), (2, "b")]


def test_a_retry_is_counted_once_with_its_last_attempt():
    history = history_of(
        ci("first try", activity_id="5", attempt=1),
        ci("second try", activity_id="5", attempt=2),
        ci("another fix", activity_id="6"),
    )
    assert logs_of(history) == [(1, "second try"), (2, "another fix")]


def test_a_retried_activity_stands_where_its_last_attempt_stood():
    history = history_of(
        ci("a1", activity_id="5", attempt=1), ci("b", activity_id="6"), ci("a2", activity_id="5", attempt=2)
    )
    assert logs_of(history) == [(1, "b"), (2, "a2")]


def test_a_first_attempt_that_wrote_nothing_does_not_merge_two_fixes():
    history = history_of(ci("one", activity_id="5", attempt=2), ci("two", activity_id="6", attempt=2))
    assert logs_of(history) == [(1, "one"), (2, "two")]


def test_the_reviewers_of_one_dispatch_are_one_rejection():
    history = history_of(
        review("naming", reviewer="STYLE", activity_id="3"),
        review("injection", reviewer="SECURITY", activity_id="3"),
        review("fine", reviewer="QA", approved=True, activity_id="3"),
        review("again", activity_id="4"),
    )
    assert rejections_of(history) == ["[STYLE] naming\n[SECURITY] injection", "[QA] again"]


def test_rows_without_an_activity_are_grouped_by_batch_and_never_merged_with_another():
    history = history_of(
        review("one", batch="b1", attempt=1),
        review("two", batch="b1", attempt=1),
        review("a retry of it", batch="b2", attempt=2),
    )
    assert rejections_of(history) == ["[QA] one\n[QA] two", "[QA] a retry of it"]


def test_a_dispatch_that_all_approved_is_no_entry():
    history = history_of(review("no"), review("fine", approved=True), review("no again"))
    assert rejections_of(history) == ["[QA] no", "[QA] no again"]


def test_a_log_that_repeats_the_one_before_it_is_told_once():
    assert logs_of(history_of(ci("a"), ci("a"), ci("b"), ci("a"))) == [(1, "a"), (2, "b"), (3, "a")]


def test_a_crashed_reviewer_is_worded_as_a_critical_rejection():
    crash = {"kind": "review", "verdicts": [{"reviewer": "QA", "crashed": True}]}
    assert rejections_of(history_of(crash, review("no")))[0].startswith("[QA/CRITICAL] [REVIEWER_CRASH]")


def test_concurrent_branches_stay_apart():
    history = history_of(
        ci("left", activity_id="5", execution_id="run-a"), ci("right", activity_id="5", execution_id="run-b")
    )
    assert logs_of(history) == [(1, "left"), (2, "right")]


def test_of_a_full_page_the_oldest_dispatch_is_left_out():
    page = [review(f"no {number}", activity_id=str(number)) for number in range(ROWS_MAX)]
    assert history_of(*page).rejections.total == ROWS_MAX - 1
    assert history_of(*page[1:]).rejections.total == ROWS_MAX - 1


def test_rows_that_cannot_be_read_are_ignored():
    assert logs_of(history_of(7, None, {"kind": "ci", "log_tail": 5}, ci(" \n"), ci("a"), ci("b"))) == [
        (1, "a"),
        (2, "b"),
    ]


def test_of_seven_long_logs_the_latest_five_are_told_within_their_share():
    history = history_of(*(ci(f"{number}" * 5_000) for number in range(1, 8)))
    strand = history.ci_failures
    share = TEXT_CHARS_MAX // 5
    assert [entry.number for entry in strand.entries] == [3, 4, 5, 6, 7]
    assert (strand.omitted, strand.total) == (2, 7)
    assert [entry.text for entry in strand.entries] == [
        f"[{5_000 - share} characters omitted] …\n{str(number) * share}" for number in range(3, 8)
    ]


def test_a_rejection_keeps_its_head():
    entry = history_of(review("h" * 5_000), review("no")).rejections.entries[0]
    assert entry.text.startswith("[QA] hhh")
    assert entry.text.endswith("characters omitted]")
    assert len(entry.text) < ENTRY_CHARS_MAX + 50


def test_there_is_no_history_unless_some_kind_came_more_than_once():
    assert build_history(run(ci("a"), review("no"))) is None
    assert build_history(run(ci("a"), ci("a"))) is None
    assert build_history(run(ci("a"), ci("b"))) is not None


def test_a_history_counts_whatever_the_outcome():
    attempts = [ci("a"), review("no"), review("no again")]
    failed = run(*attempts, outcome="CI_FAILED")
    evidence = build_evidence(failed)
    assert evidence.rejection is None
    assert evidence.history
    assert evidence.history.rejections.total == 2
    assert citation(failed, evidence)["history"] == {"review_rejections": 2, "ci_failures": 1}


def test_a_history_is_cited_only_where_there_is_one():
    once = run(ci("a"))
    assert "history" not in citation(once, build_evidence(once))


def test_the_model_reads_numbers_texts_and_what_was_omitted():
    rendered = history_of(*(ci(str(number)) for number in range(6)), review("no")).render()
    assert rendered == {
        "rejections": [{"number": 1, "text": "[QA] no"}],
        "rejectionsOmitted": 0,
        "ciFailures": [{"number": number + 1, "text": str(number)} for number in range(1, 6)],
        "ciFailuresOmitted": 1,
    }
