"""A rejection in words: what the reviewers who did not approve said, a line each finding (spec 4.5)."""

from collections.abc import Sequence

from lorebus.contracts.runs import Finding, ReviewAttempt, Verdict


def render_rejection(rows: Sequence[ReviewAttempt]) -> str:
    """Of the rows of one dispatch; empty when all approved."""
    return "\n".join(line for row in rows for verdict in row.verdicts for line in _verdict_lines(verdict))


def _verdict_lines(verdict: Verdict) -> list[str]:
    if verdict.approved and not verdict.crashed:
        return []
    # A reviewer that crashed rejects, as it does in the review.
    crash = [f"[{verdict.reviewer}/CRITICAL] [REVIEWER_CRASH] The reviewer crashed."] if verdict.crashed else []
    lines = [*crash, *(_finding_line(verdict.reviewer, finding) for finding in verdict.findings)]
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
