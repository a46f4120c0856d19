"""What a lesson may rest on: the run's latest rejection, latest CI log and change, each within its bound (spec 4.4).

The evidence follows the outcome, since a run that failed in CI says nothing new with a rejection it had got past.
What else stopped the run (a sign-off, a gate, a step that threw) counts whatever the outcome.
"""

from dataclasses import dataclass
from typing import Any

from lorebus.contracts.runs import Change, OtherAttempt, Outcome, RunFinished

from services.writer.evidence.attempts import last_tries
from services.writer.evidence.bounds import TEXT_CHARS_MAX, keep_head, keep_tail
from services.writer.evidence.history import History, build_history, find_ci_failures, find_rejections
from services.writer.transcripts.digest import Digest

FILES_MAX = 40
OTHER_KINDS_MAX = 4
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
class OtherFailure:
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Evidence:
    outcome: Outcome
    rejection: str | None = None
    ci_failure: str | None = None
    change: ChangeEvidence | None = None
    other_failures: tuple[OtherFailure, ...] = ()
    history: History | None = None
    digest: Digest | None = None

    @property
    def has_failure(self) -> bool:
        return bool(self.rejection or self.ci_failure or self.other_failures)


def build_evidence(run: RunFinished) -> Evidence:
    outcome = run.known_outcome
    rejections, logs = find_rejections(run.reviews), find_ci_failures(run.ci_failures)
    return Evidence(
        outcome=outcome,
        rejection=keep_head(rejections[-1]) if rejections and outcome != "CI_FAILED" else None,
        ci_failure=keep_tail(logs[-1]) if logs and outcome != "REVIEW_FAILED" else None,
        change=_build_change(run.change),
        other_failures=_find_other_failures(run),
        history=build_history(run),
    )


def skip_reason(run: RunFinished, evidence: Evidence) -> str | None:
    """Why this run gives no lesson, or None: nothing in the evidence says why a clean change was not merged."""
    is_silent = run.known_outcome == "MERGE_TIMED_OUT" and not evidence.has_failure
    return "merge_timed_out_without_rejection" if is_silent else None


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
    if evidence.history:
        cited["history"] = evidence.history.counts()
    if evidence.digest:
        cited["transcripts"] = evidence.digest.citation()
    return cited


def _quote(evidence: Evidence) -> str:
    """The end that the outcome failed on: the start of a rejection, the end of a log."""
    if evidence.rejection and evidence.outcome != "CI_FAILED":
        return evidence.rejection[:QUOTE_CHARS_MAX]
    others = [other.text for other in evidence.other_failures]
    return (evidence.ci_failure or "".join(others[-1:])).rstrip()[-QUOTE_CHARS_MAX:]


def _find_other_failures(run: RunFinished) -> tuple[OtherFailure, ...]:
    """The last of each kind, the newest kinds if there are many."""
    latest: dict[str, OtherAttempt] = {}
    for rows in last_tries(run.other_failures):
        latest.pop(rows[-1].kind, None)
        if rows[-1].text.strip():
            latest[rows[-1].kind] = rows[-1]
    told = list(latest.values())[-OTHER_KINDS_MAX:]
    return tuple(OtherFailure(one.kind, keep_tail(one.text, TEXT_CHARS_MAX // len(told))) for one in told)


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
