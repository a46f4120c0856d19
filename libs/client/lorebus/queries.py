"""What each kind of agent asks its memory with: the text that says what it is working on (seed 3).

Pure. Each is bounded to QUERY_CHARS_MAX, and empty where there is nothing to ask with: recall then answers empty
without asking. Pass the query on with the agent's name, which tells recall how to read it:

    await memory.recall(ci_fixer_query(log), agent="ci_fixer", repository="acme/shop")
"""

from collections.abc import Iterable, Mapping
from typing import Any

from lorebus.contracts.envelope import build_message
from lorebus.contracts.runs import Finding, Verdict

QUERY_CHARS_MAX = 16_000
GATE_CHARS_MAX = 200
NOTES_CHARS_MAX = 1_500
"""Recall reads the first 2 000 characters of a prose query (spec 5): long notes must leave room for the paths."""


def implementer_query(description: str) -> str:
    """The work request."""
    return description.strip()[:QUERY_CHARS_MAX]


def ci_fixer_query(log: str) -> str:
    """The end of the failing log: a failure is reported last."""
    return log.strip()[-QUERY_CHARS_MAX:]


def review_fixer_query(rejection: str | Iterable[Verdict | Mapping[str, Any]]) -> str:
    """The rejection as it was worded, or what those reviewers found who did not approve, as a run tells it.

    Raises InvalidMessage for what is no verdict.
    """
    if isinstance(rejection, str):
        return rejection.strip()[:QUERY_CHARS_MAX]
    verdicts = [one if isinstance(one, Verdict) else build_message(Verdict, one) for one in rejection]
    rejecting = [verdict for verdict in verdicts if verdict.crashed or not verdict.approved]
    findings = [finding for verdict in rejecting for finding in verdict.findings]
    return "\n".join(filter(None, map(_render_finding, findings)))[:QUERY_CHARS_MAX]


def gate_fixer_query(gate: str, output: str) -> str:
    """The gate's name, then the end of its output."""
    name, said = gate.strip()[:GATE_CHARS_MAX], output.strip()
    left_chars = QUERY_CHARS_MAX - len(name) - len("\n")
    return f"{name}\n{said[-left_chars:]}".strip()


def reviewer_query(notes: str, paths: Iterable[str]) -> str:
    """The implementer's notes, then the changed files' paths."""
    return "\n".join(filter(None, (notes.strip()[:NOTES_CHARS_MAX], *paths)))[:QUERY_CHARS_MAX]


def _render_finding(finding: Finding) -> str:
    """Without the reviewer and the severity, which tell no two rejections apart."""
    fix = f"Suggested fix: {finding.suggested_fix}" if finding.suggested_fix else ""
    return " — ".join(part for part in (finding.file or "", finding.text or "", fix) if part)
