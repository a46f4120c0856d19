"""The model-free lesson: what happened in plain words, then the few lines that matter."""

from dataclasses import dataclass, field
from typing import Any

from lorebus.contracts.runs import Outcome, RunFinished

from services.writer.account import INDEX_CHARS_MAX, Account, tell_ci_failure, tell_rejection, tell_work
from services.writer.evidence import ChangeEvidence, Evidence, citation

SUMMARY_CHARS_MAX = 1_200
RATIONALE_CHARS_MAX = 1_000
FILES_NAMED_MAX = 8

_ENDED: dict[Outcome, str] = {
    "CI_FAILED": "ended because CI kept failing",
    "REVIEW_FAILED": "ended because reviewers kept rejecting the change",
    "MERGED": "was merged",
    "MERGE_TIMED_OUT": "was not merged in time",
    "COMPLETED": "was completed",
}


@dataclass(frozen=True, slots=True)
class Lesson:
    summary: str
    rationale: str
    failure_type: str | None
    confidence: float
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    index_text: str = ""
    """More of the evidence, for the lexical arm only: it is neither embedded nor shown."""


def write_lesson(run: RunFinished, evidence: Evidence) -> Lesson:
    accounts = _accounts(run, evidence)
    return Lesson(
        summary=_write_summary(run, evidence, accounts),
        rationale=_write_rationale(evidence, accounts),
        failure_type=accounts[0].failure_type,
        confidence=accounts[0].confidence,
        metadata=_build_metadata(run, evidence, accounts),
        index_text=_index_text(evidence, accounts),
    )


def _accounts(run: RunFinished, evidence: Evidence) -> list[Account]:
    """What the evidence has to say, the rejection first: it was written by someone who read the change."""
    told: list[Account] = []
    if evidence.rejection:
        told.append(tell_rejection(evidence.rejection))
    if evidence.ci_failure:
        told.append(tell_ci_failure(evidence.ci_failure))
    return told or [tell_work(run.ticket, evidence.change)]


def _write_summary(run: RunFinished, evidence: Evidence, accounts: list[Account]) -> str:
    opening = f"A run in {run.repository} {_ENDED[evidence.outcome]}"
    left = SUMMARY_CHARS_MAX - len(opening) - 2
    share = left // len(accounts)
    return f"{opening}: " + "\n".join(account.render(share - 1) for account in accounts)


def _write_rationale(evidence: Evidence, accounts: list[Account]) -> str:
    parts = [account.basis for account in accounts]
    if evidence.change and evidence.change.files:
        parts.append(f"Changed files: {name_files(evidence.change)}.")
    return "\n".join(parts)[:RATIONALE_CHARS_MAX]


def name_files(change: ChangeEvidence) -> str:
    named = [file.path for file in change.files[:FILES_NAMED_MAX]]
    rest = len(change.files) + change.files_omitted - len(named)
    return ", ".join(named) + (f" and {rest} more" if rest else "")


def _index_text(evidence: Evidence, accounts: list[Account]) -> str:
    texts = [account.index_text for account in accounts]
    if evidence.change:
        texts.append(" ".join(file.path for file in evidence.change.files))
    return "\n".join(texts)[:INDEX_CHARS_MAX]


def _build_metadata(run: RunFinished, evidence: Evidence, accounts: list[Account]) -> dict[str, Any]:
    metadata: dict[str, Any] = {"outcome": evidence.outcome, "evidence": citation(run, evidence)}
    if run.outcome != evidence.outcome:
        metadata["reported_outcome"] = run.outcome[:100]
    if kinds := [account.kind for account in accounts if account.kind]:
        metadata["failure_kind"] = kinds[0]
    return metadata
