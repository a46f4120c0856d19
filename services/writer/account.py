"""What one kind of evidence has to say: a rejection, a CI log, or the work alone."""

import re
from dataclasses import dataclass

from lorebus.contracts.runs import Ticket

from libs.common.domain.log_forms import STRONG
from libs.common.domain.log_lines import last_lines, read_log, select_lines
from services.writer.evidence import ChangeEvidence
from services.writer.failure import UNKNOWN, find_kind

DETAIL_CHARS_MAX = 300
TEXT_CHARS_MAX = 500
INDEX_CHARS_MAX = 4_000
SHOWN_CHARS_MAX = 1_000
LAST_LINES = 5
HIGH, MEDIUM, LOW = 0.9, 0.6, 0.3

_LABELS = re.compile(r"^\[([^\]]*)\] (?:\[([^\]]*)\] )?")
_MARKUP = re.compile(r"`{3}.*?(?:`{3}|$)|[*`#]+", re.DOTALL)
_MERGE_CONFLICT = "merge conflict"
_SECURITY = re.compile(r"(?i)\bsecurity|vulnerab")


@dataclass(frozen=True, slots=True)
class Account:
    opening: str
    details: tuple[str, ...]
    basis: str
    confidence: float
    failure_type: str | None = None
    kind: str | None = None
    index_text: str = ""

    def render(self, chars_max: int) -> str:
        """The opening and as many whole details as fit."""
        text = self.opening[:chars_max]
        for detail in self.details:
            if len(text) + 1 + len(detail) <= chars_max:
                text = f"{text}\n{detail}"
        return text


def tell_ci_failure(log: str) -> Account:
    lines = read_log(log)
    kind = find_kind(lines)
    strong = any(line.score >= STRONG for line in lines)
    told = select_lines(lines, INDEX_CHARS_MAX // 2)
    shown = select_lines(lines, SHOWN_CHARS_MAX) or last_lines(lines, LAST_LINES)
    return Account(
        opening=f"{kind.words} ({kind.name}).",
        details=tuple(line.text for line in shown),
        basis="The end of the latest failing CI log" + (" states the error." if strong else " names no cause."),
        confidence=HIGH if strong else MEDIUM,
        failure_type="MERGE_CONFLICT" if kind.name == _MERGE_CONFLICT else "CI_FAILURE",
        kind=None if kind is UNKNOWN else kind.name,
        index_text="\n".join(line.text for line in told),
    )


def tell_rejection(rejection: str) -> Account:
    lines = rejection.splitlines()
    findings = [(line, label) for line in lines if (label := _LABELS.match(line))]
    categories = [str(label[2]) for _, label in findings if label[2]]
    only_security = bool(categories) and all(map(_SECURITY.search, categories))
    named = ", ".join(dict.fromkeys(categories))[:TEXT_CHARS_MAX]
    return Account(
        opening="the review asks for changes" + (f" ({named})." if named else "."),
        details=tuple(_clip(line[label.end() :], DETAIL_CHARS_MAX) for line, label in findings),
        basis="The latest rejection by the reviewers states the findings.",
        confidence=HIGH,
        failure_type="SECURITY_VIOLATION" if only_security else "REVIEW_REJECTION",
        kind="review",
        index_text=rejection[:INDEX_CHARS_MAX],
    )


def tell_work(ticket: Ticket | None, change: ChangeEvidence | None) -> Account:
    """Nothing was rejected: the ticket says what was asked, the notes what was done."""
    title = _clip((ticket and ticket.title) or "", DETAIL_CHARS_MAX)
    asked = _clip((ticket and ticket.description) or "", TEXT_CHARS_MAX)
    done = _clip((change and change.implementation_notes) or "", TEXT_CHARS_MAX)
    details = (f"Asked: {asked}" if asked else "", f"Done: {done}" if done else "")
    return Account(
        opening=f"{title}." if title else "nothing was rejected on the way.",
        details=tuple(filter(None, details)),
        basis="No rejection and no CI failure is on record; this rests on the ticket and the notes.",
        confidence=LOW,
        index_text=_raw(ticket, change),
    )


def _raw(ticket: Ticket | None, change: ChangeEvidence | None) -> str:
    asked = ((ticket and ticket.description) or "")[: INDEX_CHARS_MAX // 2]
    done = ((change and change.implementation_notes) or "")[: INDEX_CHARS_MAX // 2]
    return f"{asked}\n{done}".strip()


def _clip(text: str, chars_max: int) -> str:
    plain = " ".join(_MARKUP.sub(" ", text[: chars_max * 4]).split())
    return plain if len(plain) <= chars_max else f"{plain[:chars_max]}…"
