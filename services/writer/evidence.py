"""What a lesson may rest on: the run's latest rejection, latest CI log and change, each within its bound.

The evidence follows the outcome, since a run that failed in CI says nothing new with a rejection it had got past.
"""

from dataclasses import dataclass
from typing import Any

from lorebus.contracts.runs import Change, Finding, Outcome, ReviewAttempt, RunFinished, Verdict

from services.writer.attempts import last_tries

TEXT_CHARS_MAX = 4_000
FILES_MAX = 40
PATH_CHARS_MAX = 400
QUOTE_CHARS_MAX = 300


@dataclass(frozen=True, slots=True)
class FileChange:
    path: str
    operation: str | None = None
    lines_added: int | None = None
    lines_removed: int | None = None


@dataclass(frozen=True, slots=True)
class TestCounts:
    failing: int | None = None
    passing: int | None = None
    total: int | None = None
    passed: bool | None = None


@dataclass(frozen=True, slots=True)
class ChangeEvidence:
    files: tuple[FileChange, ...]
    files_omitted: int = 0
    head_sha: str = ""
    implementation_notes: str | None = None
    tests: TestCounts | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    outcome: Outcome
    rejection: str | None = None
    ci_failure: str | None = None
    change: ChangeEvidence | None = None


def build_evidence(run: RunFinished) -> Evidence:
    outcome = run.known_outcome
    return Evidence(
        outcome=outcome,
        rejection=None if outcome == "CI_FAILED" else _latest_rejection(run),
        ci_failure=None if outcome == "REVIEW_FAILED" else _latest_ci_failure(run),
        change=_build_change(run.change),
    )


def skip_reason(run: RunFinished, evidence: Evidence) -> str | None:
    """Why this run gives no lesson, or None: nothing in the evidence says why a clean change was not merged."""
    nothing_rejected = evidence.rejection is None and evidence.ci_failure is None
    return "merge_timed_out_without_rejection" if run.known_outcome == "MERGE_TIMED_OUT" and nothing_rejected else None


def citation(run: RunFinished, evidence: Evidence) -> dict[str, Any]:
    """Where a lesson came from, as `metadata.evidence`."""
    head_sha = evidence.change.head_sha if evidence.change else ""
    cited: dict[str, Any] = {
        "pull_requests": [
            {"number": request.number, "head_sha": request.head_sha}
            for request in run.pull_requests[:FILES_MAX]
            if request.number is not None
        ]
    }
    if head_sha:
        cited["head_sha"] = head_sha
    if quote := _quote(evidence):
        cited["quote"] = quote
    return cited


def _quote(evidence: Evidence) -> str:
    if evidence.rejection and evidence.outcome != "CI_FAILED":
        return evidence.rejection[:QUOTE_CHARS_MAX]
    return (evidence.ci_failure or "").rstrip()[-QUOTE_CHARS_MAX:]


def _latest_rejection(run: RunFinished) -> str | None:
    texts = (render_rejection(review) for review in reversed(last_tries(run.reviews)))
    return next((keep_head(text) for text in texts if text), None)


def _latest_ci_failure(run: RunFinished) -> str | None:
    logs = (attempt.log_tail for attempt in reversed(last_tries(run.ci_failures)))
    return next((keep_tail(log) for log in logs if log.strip()), None)


def render_rejection(review: ReviewAttempt) -> str:
    """What the reviewers who did not approve said, a line each finding; empty when all approved."""
    return "\n".join(line for verdict in review.verdicts for line in _verdict_lines(verdict))


def _verdict_lines(verdict: Verdict) -> list[str]:
    lines = [f"[{verdict.reviewer}/CRITICAL] [REVIEWER_CRASH] The reviewer crashed."] if verdict.crashed else []
    if verdict.approved and not verdict.crashed:
        return []
    lines += [_finding_line(verdict.reviewer, finding) for finding in verdict.findings]
    return lines or [f"[{verdict.reviewer}] Rejected without a finding."]


def _finding_line(reviewer: str, finding: Finding) -> str:
    label = f"[{reviewer}/{finding.severity}]" if finding.severity else f"[{reviewer}]"
    if finding.category:
        label += f" [{finding.category}]"
    place = finding.file or ""
    if place and finding.line is not None:
        place += f":{finding.line}"
    fix = f"Suggested fix: {_one_line(finding.suggested_fix)}" if finding.suggested_fix else ""
    return f"{label} " + " — ".join(part for part in (place, _one_line(finding.text or ""), fix) if part)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _build_change(change: Change | None) -> ChangeEvidence | None:
    if change is None or change.files is None:
        return None
    notes = (change.implementation_notes or "").strip()
    tests = change.tests
    return ChangeEvidence(
        files=tuple(
            FileChange(file.path[:PATH_CHARS_MAX], file.operation, file.lines_added, file.lines_removed)
            for file in change.files[:FILES_MAX]
        ),
        files_omitted=max(0, len(change.files) - FILES_MAX),
        head_sha=change.head_sha or "",
        implementation_notes=keep_head(notes) if notes else None,
        tests=TestCounts(tests.failing, tests.passing, tests.total, tests.passed) if tests else None,
    )


def keep_head(text: str, chars_max: int = TEXT_CHARS_MAX) -> str:
    omitted = len(text) - chars_max
    return text if omitted <= 0 else f"{text[:chars_max]}\n… [{omitted} characters omitted]"


def keep_tail(text: str, chars_max: int = TEXT_CHARS_MAX) -> str:
    omitted = len(text) - chars_max
    return text if omitted <= 0 else f"[{omitted} characters omitted] …\n{text[-chars_max:]}"
