"""The model-free lesson: what happened in plain words, then the few lines that matter.

The first sentence follows the outcome: a run that failed ends with what stopped it, one that was merged got past
what its earlier attempts hit, and says by what. An outcome that is not known is named, and nothing is claimed of it.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from lorebus.contracts.runs import Outcome, RunFinished

from services.writer.evidence.collection import ChangeEvidence, Evidence, citation
from services.writer.wording.account import (
    INDEX_CHARS_MAX,
    Account,
    shorten,
    tell_ci_failure,
    tell_history,
    tell_other_failure,
    tell_rejection,
    tell_work,
)

SUMMARY_CHARS_MAX = 1_200
RATIONALE_CHARS_MAX = 1_000
FILES_NAMED_MAX = 8
OUTCOME_CHARS_MAX = 60
REMEDY_CHARS_MAX = 300

_ENDED: dict[Outcome, str] = {
    "CI_FAILED": "ended because CI kept failing",
    "REVIEW_FAILED": "ended because reviewers kept rejecting the change",
    "MERGED": "was merged",
    "MERGE_TIMED_OUT": "was not merged in time",
    "COMPLETED": "was completed",
}
_GOT_PAST: dict[Outcome, str] = {
    "MERGED": "was merged after it got past this",
    "MERGE_TIMED_OUT": "was not merged in time, after it got past this",
    "COMPLETED": "was completed after it got past this",
}


@dataclass(frozen=True, slots=True)
class Lesson:
    summary: str
    rationale: str
    failure_type: str | None
    confidence: float | None
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
    told += map(tell_other_failure, evidence.other_failures)
    return told or [tell_work(run.ticket, evidence.change, evidence.digest)]


def _write_summary(run: RunFinished, evidence: Evidence, accounts: list[Account]) -> str:
    opening = f"A run in {run.repository} {_say_outcome(run, evidence)}: "
    remedy = _say_remedy(run, evidence)
    left = SUMMARY_CHARS_MAX - len(opening) - len(remedy) - 1
    share = left // len(accounts) - 1
    first, *others = accounts
    told = (first.render(share), *(f"{other.also}{other.render(share - len(other.also))}" for other in others), remedy)
    return opening + "\n".join(filter(None, told))


def _say_outcome(run: RunFinished, evidence: Evidence) -> str:
    if run.outcome != evidence.outcome:
        return f"ended as {clean_outcome(run.outcome)}"
    ended = _ENDED[evidence.outcome]
    return _GOT_PAST.get(evidence.outcome, ended) if evidence.has_failure else ended


def clean_outcome(reported: str) -> str:
    """Somebody's word, so only word characters of it, and not many."""
    return re.sub(r"\W+", "_", reported[: OUTCOME_CHARS_MAX * 4])[:OUTCOME_CHARS_MAX].strip("_") or "unknown"


def _say_remedy(run: RunFinished, evidence: Evidence) -> str:
    """By what a run got past its failures, where notes or files say so."""
    change = evidence.change
    if not change or not evidence.has_failure or evidence.outcome not in _GOT_PAST or run.outcome != evidence.outcome:
        return ""
    if notes := shorten(change.implementation_notes or "", REMEDY_CHARS_MAX):
        return f"Got past with: {notes}"
    return f"Got past with changes in {name_files(change)[:REMEDY_CHARS_MAX]}." if change.files else ""


def _write_rationale(evidence: Evidence, accounts: list[Account]) -> str:
    parts = [account.basis for account in accounts]
    if evidence.history:
        parts.append(tell_history(evidence.history))
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
