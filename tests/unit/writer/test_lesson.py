import json
import os
from pathlib import Path
from typing import Any

import pytest
from lorebus.contracts.envelope import parse_message
from lorebus.contracts.runs import RunFinished

from services.writer.account import INDEX_CHARS_MAX
from services.writer.evidence import build_evidence, skip_reason
from services.writer.lesson import RATIONALE_CHARS_MAX, SUMMARY_CHARS_MAX, Lesson, write_lesson

SHARED = Path(os.environ.get("LOREBUS_SHARED", Path(__file__).parents[4] / "shared"))
LOG = "\n".join(
    [
        "2026-03-06T10:59:03.74Z Cache restored successfully",
        "2026-03-06T10:59:05.10Z Traceback (most recent call last):",
        "2026-03-06T10:59:05.11Z ModuleNotFoundError: No module named 'reporting'",
        '\x1b[31mThe command "pytest tests" exited with 1.\x1b[0m',
    ]
)


def lesson(outcome: str, **fields: Any) -> Lesson:
    run = RunFinished.model_validate({"run_id": "r1", "repository": "acme/shop", "outcome": outcome, **fields})
    return write_lesson(run, build_evidence(run))


def failed(log: str) -> Lesson:
    return lesson("CI_FAILED", attempts=[{"kind": "ci", "log_tail": log}])


def rejected(*findings: dict[str, Any], outcome: str = "REVIEW_FAILED", more: tuple[Any, ...] = ()) -> Lesson:
    verdict = {"reviewer": "human", "approved": False, "findings": list(findings)}
    return lesson(outcome, attempts=[{"kind": "review", "verdicts": [verdict]}, *more])


def test_a_lesson_opens_with_repository_outcome_and_kind_and_then_shows_the_lines():
    kind = "a module, package or shared library cannot be loaded (import error)."
    assert failed(LOG).summary.splitlines() == [
        f"A run in acme/shop ended because CI kept failing: {kind}",
        "Traceback (most recent call last):",
        "ModuleNotFoundError: No module named 'reporting'",
        'The command "pytest tests" exited with 1.',
    ]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("src/a.c:3:1: error: expected ';' before '}' token", "compile error"),
        ("eslint: 3 problems (3 errors)", "lint"),
        ("--- FAIL: TestSum: expected 3, got 2", "test assertion"),
        ("Error: operation timed out", "timeout"),
        ("E: Failed to fetch http://example.com/x 404 Not Found", "package download"),
        ("bash: ./run.sh: Permission denied", "permission"),
        ("java.lang.OutOfMemoryError: Java heap space", "out of memory"),
        ("Error: connect: connection refused", "network"),
        ("SyntaxError: invalid syntax", "syntax error"),
        ("ERESOLVE could not resolve: dependency conflict failed", "dependency resolution"),
        ("./run.sh: line 3: cargo: command not found", "missing file"),
    ],
)
def test_the_log_names_its_kind(line: str, kind: str):
    assert failed(f"step one\n{line}\nbye").metadata["failure_kind"] == kind


def test_a_merge_conflict_has_its_own_failure_type():
    conflict = failed("Auto-merging a.py\nCONFLICT (content): Merge conflict in a.py\nAutomatic merge failed")
    assert conflict.failure_type == "MERGE_CONFLICT"


def test_a_log_without_a_failure_points_only_to_its_end():
    told = failed("alpha\nbeta")
    assert (told.confidence, told.failure_type) == (0.6, "CI_FAILURE")
    assert told.summary.endswith("alpha\nbeta")
    assert "failure_kind" not in told.metadata


def test_a_review_tells_its_findings_with_their_files():
    told = rejected({"category": "BUG", "file": "a.py", "line": 3, "text": "Never `closed`."})
    assert told.summary == (
        "A run in acme/shop ended because reviewers kept rejecting the change: the review asks for changes (BUG).\n"
        "a.py:3 — Never closed ."
    )
    assert (told.failure_type, told.confidence) == ("REVIEW_REJECTION", 0.9)


def test_a_rejection_on_security_alone_is_a_violation():
    assert rejected({"category": "Security", "text": "x"}).failure_type == "SECURITY_VIOLATION"
    mixed = rejected({"category": "Security", "text": "x"}, {"category": "Style", "text": "y"})
    assert mixed.failure_type == "REVIEW_REJECTION"


def test_a_merged_run_tells_both_of_what_it_got_past():
    told = rejected({"text": "Rename it."}, outcome="MERGED", more=({"kind": "ci", "log_tail": LOG},))
    assert "Rename it." in told.summary
    assert "No module named" in told.summary
    assert told.failure_type == "REVIEW_REJECTION"


def test_work_that_was_never_rejected_rests_on_ticket_and_notes():
    told = lesson(
        "COMPLETED",
        ticket={"title": "Round up", "description": "One cent is lost."},
        change={"files": [{"path": "money.py"}], "implementation_notes": "Rounded half up."},
    )
    assert told.summary.splitlines() == [
        "A run in acme/shop was completed: Round up.",
        "Asked: One cent is lost.",
        "Done: Rounded half up.",
    ]
    assert (told.failure_type, told.confidence) == (None, 0.3)
    assert "money.py" in told.rationale


def test_an_unknown_outcome_is_said_in_the_metadata():
    assert lesson("EXPLODED").metadata["reported_outcome"] == "EXPLODED"
    assert lesson("EXPLODED").metadata["outcome"] == "COMPLETED"
    assert "reported_outcome" not in lesson("COMPLETED").metadata


def test_two_runs_that_failed_alike_give_the_same_summary():
    other = LOG.replace("2026-03-06T10:59", "2026-04-01T22:01")
    assert failed(other).summary == failed(LOG).summary


@pytest.mark.parametrize(
    "told",
    [
        failed("error: bad\n" * 90_000),
        failed("x" * 1_048_576),
        failed("</recalled_memory>\n" + "error: \x1b[" * 90_000),
        rejected({"file": "f" * 500_000, "text": "t" * 500_000}),
        rejected(*({"category": f"C{n}", "text": f"finding {n}"} for n in range(10_000))),
        lesson("COMPLETED", ticket={"title": "t" * 1_048_576, "description": "```" * 300_000}),
        lesson("COMPLETED", change={"files": [{"path": "p" * 900} for _ in range(10_000)]}),
    ],
    ids=["many lines", "one line", "fence and escapes", "long finding", "many findings", "long ticket", "many files"],
)
def test_whatever_comes_in_a_lesson_is_bounded(told: Lesson):
    assert 0 < len(told.summary) <= SUMMARY_CHARS_MAX
    assert len(told.rationale) <= RATIONALE_CHARS_MAX
    assert len(told.index_text) <= INDEX_CHARS_MAX


@pytest.mark.skipif(not (SHARED / "real-runs").is_dir(), reason="the real runs are not beside this checkout")
def test_every_real_run_gives_a_lesson_of_the_labelled_failure_type():
    labels = json.loads((SHARED / "real-runs" / "labels.json").read_text())
    for label in labels["runs"].values():
        run = parse_message(RunFinished, (SHARED / "real-runs" / label["file"]).read_bytes())
        evidence = build_evidence(run)
        if skip_reason(run, evidence):
            assert not label["expect_lesson"]
            continue
        told = write_lesson(run, evidence)
        assert told.failure_type == labels["root_causes"][label["root_causes"][0]]["failure_type"]
        assert 0 < len(told.summary) <= SUMMARY_CHARS_MAX
        assert "\x1b" not in told.summary + told.index_text
