import os
from pathlib import Path
from typing import Any

import pytest
from lorebus.contracts.envelope import parse_message
from lorebus.contracts.runs import RunFinished

from services.writer.evidence.bounds import TEXT_CHARS_MAX
from services.writer.evidence.collection import FILES_MAX, Evidence, build_evidence, citation, skip_reason

SHARED = Path(os.environ.get("LOREBUS_SHARED", Path(__file__).parents[4] / "shared"))


def run(outcome: str = "MERGED", **fields: Any) -> RunFinished:
    return RunFinished.model_validate({"run_id": "r1", "repository": "acme/shop", "outcome": outcome, **fields})


def ci(log: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "ci", "log_tail": log, **fields}


def review(*verdicts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"kind": "review", "verdicts": list(verdicts), **fields}


FINDING = {
    "severity": "HIGH", "category": "BUG", "file": "a.py", "line": 7, "text": "Off by\none.", "suggested_fix": "Use <=."
}  # fmt: skip
REJECTED = {"reviewer": "SECURITY", "approved": False, "findings": [FINDING]}
APPROVED = {"reviewer": "STYLE", "approved": True, "findings": [FINDING]}
WORDED = "[SECURITY/HIGH] [BUG] a.py:7 — Off by one. — Suggested fix: Use <=."


@pytest.mark.parametrize(
    ("outcome", "has_rejection", "has_log"),
    [
        ("CI_FAILED", False, True),
        ("REVIEW_FAILED", True, False),
        ("MERGED", True, True),
        ("COMPLETED", True, True),
        ("MERGE_TIMED_OUT", True, True),
        ("SOMETHING_NEW", True, True),
    ],
)
def test_evidence_follows_the_outcome(outcome: str, has_rejection: bool, has_log: bool):
    evidence = build_evidence(run(outcome, attempts=[review(REJECTED), ci("error: no")]))
    assert (evidence.rejection is not None, evidence.ci_failure is not None) == (has_rejection, has_log)


def test_a_finding_is_worded_as_the_fix_was_given_it():
    assert build_evidence(run(attempts=[review(REJECTED)])).rejection == WORDED


def test_reviewers_who_approved_are_left_out():
    assert build_evidence(run(attempts=[review(APPROVED, REJECTED)])).rejection == WORDED
    assert build_evidence(run(attempts=[review(APPROVED)])).rejection is None


def test_parts_that_a_finding_lacks_are_left_out():
    bare = {"reviewer": "human", "findings": [{"text": "No."}]}
    assert build_evidence(run(attempts=[review(bare)])).rejection == "[human] No."


def test_a_crashed_reviewer_is_a_critical_rejection():
    rejection = build_evidence(run(attempts=[review({"reviewer": "QA", "crashed": True})])).rejection
    assert rejection
    assert rejection.startswith("[QA/CRITICAL] [REVIEWER_CRASH]")


def test_the_last_attempt_of_a_kind_is_the_latest():
    evidence = build_evidence(run(attempts=[ci("first"), review(REJECTED), ci("second"), review(APPROVED)]))
    assert (evidence.ci_failure, evidence.rejection) == ("second", WORDED)


def test_a_retried_activity_counts_by_its_highest_try():
    retried = [review(REJECTED, activity_id="5", attempt=1), review(APPROVED, activity_id="5", attempt=2)]
    assert build_evidence(run(attempts=retried)).rejection is None
    late = [ci("second try", activity_id="5", attempt=2), ci("first try", activity_id="5", attempt=1)]
    assert build_evidence(run(attempts=late)).ci_failure == "second try"


def test_attempts_without_an_activity_are_never_tries_of_one():
    attempts = [review(REJECTED, attempt=1), review(APPROVED, attempt=2)]
    assert build_evidence(run(attempts=attempts)).rejection == WORDED


def test_a_rejection_keeps_its_head_and_a_log_its_tail():
    long = {"reviewer": "A", "findings": [{"text": "h" * 1_048_576}]}
    evidence = build_evidence(run(attempts=[review(long), ci("x" * 1_048_576 + "end")]))
    assert evidence.rejection
    assert evidence.ci_failure
    assert evidence.rejection.startswith("[A] hhh")
    assert evidence.rejection.endswith("characters omitted]")
    assert evidence.ci_failure.startswith("[1044579 characters omitted]")
    assert evidence.ci_failure.endswith("xend")
    assert max(len(evidence.rejection), len(evidence.ci_failure)) < TEXT_CHARS_MAX + 50


def test_forty_files_are_kept_and_the_rest_counted():
    files = [{"path": f"src/{n}.py", "operation": "modified"} for n in range(10_000)]
    change = build_evidence(run(change={"files": files, "implementation_notes": "n" * 9_000})).change
    assert change
    assert [len(change.files), change.files_omitted] == [FILES_MAX, 10_000 - FILES_MAX]
    assert change.implementation_notes
    assert len(change.implementation_notes) < TEXT_CHARS_MAX + 50


def test_forty_five_files_leave_forty_and_five_omitted():
    change = build_evidence(run(change={"files": [{"path": f"{n}.py"} for n in range(45)]})).change
    assert change
    assert ([file.path for file in change.files], change.files_omitted) == ([f"{n}.py" for n in range(40)], 5)


def test_a_run_that_left_no_evidence_is_read_by_its_outcome_alone():
    assert build_evidence(run("COMPLETED")) == Evidence("COMPLETED")


def test_a_change_without_a_list_of_files_is_left_out():
    assert build_evidence(run(change={"head_sha": "abc", "files": None})).change is None


def test_blank_texts_are_left_out():
    evidence = build_evidence(run(attempts=[ci("  \n")], change={"files": [], "implementation_notes": " "}))
    assert evidence.ci_failure is None
    assert evidence.change
    assert evidence.change.implementation_notes is None


def test_a_citation_names_pull_requests_head_and_a_quote():
    cited = run(
        "CI_FAILED",
        attempts=[ci("a" * 400 + "end")],
        pull_requests=[{"number": 3, "head_sha": "abc"}, {"head_sha": "def"}],
        change={"files": [], "head_sha": "abc"},
    )
    assert citation(cited, build_evidence(cited)) == {
        "pull_requests": [{"number": 3, "head_sha": "abc"}],
        "head_sha": "abc",
        "quote": "a" * 297 + "end",
    }


def test_a_rejection_is_quoted_from_its_start():
    cited = run(attempts=[review(REJECTED), ci("log")])
    assert citation(cited, build_evidence(cited))["quote"] == WORDED


def test_what_else_stopped_the_run_counts_whatever_the_outcome():
    attempts = [
        {"kind": "sign_off", "text": "The migration has no way back."},
        {"kind": "gate security", "output": "first\n"},
        {"kind": "gate security", "output": "CVE found"},
        {"kind": "step", "error": " "},
    ]
    for outcome in ("CI_FAILED", "REVIEW_FAILED", "SIGN_OFF_REJECTED"):
        evidence = build_evidence(run(outcome, attempts=attempts))
        assert [(other.kind, other.text) for other in evidence.other_failures] == [
            ("sign_off", "The migration has no way back."),
            ("gate security", "CVE found"),
        ]


def test_a_merge_that_timed_out_after_a_refused_sign_off_gives_a_lesson():
    refused = run("MERGE_TIMED_OUT", attempts=[{"kind": "sign_off", "text": "no"}])
    assert skip_reason(refused, build_evidence(refused)) is None
    assert citation(refused, build_evidence(refused))["quote"] == "no"


def test_a_merge_that_timed_out_with_nothing_rejected_gives_no_lesson():
    quiet = run("MERGE_TIMED_OUT", attempts=[review(APPROVED)])
    rejected = run("MERGE_TIMED_OUT", attempts=[review(REJECTED)])
    assert skip_reason(quiet, build_evidence(quiet)) == "merge_timed_out_without_rejection"
    assert skip_reason(rejected, build_evidence(rejected)) is None
    assert skip_reason(run("COMPLETED"), build_evidence(run("COMPLETED"))) is None


@pytest.mark.skipif(not (SHARED / "real-runs").is_dir(), reason="the real runs are not beside this checkout")
def test_of_the_real_runs_one_gives_no_lesson():
    runs = [parse_message(RunFinished, path.read_bytes()) for path in (SHARED / "real-runs" / "runs").glob("*.json")]
    assert len([one for one in runs if skip_reason(one, build_evidence(one))]) == 1
