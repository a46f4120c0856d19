"""What one kind of evidence has to say: a rejection, a CI log, another failure, or the work alone."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lorebus.contracts.runs import Ticket

from libs.common.domain.log_forms import STRONG
from libs.common.domain.log_lines import LogLine, clean_line, is_log, last_lines, read_log, select_lines
from services.writer.evidence.collection import ChangeEvidence, OtherFailure
from services.writer.evidence.history import History
from services.writer.transcripts.digest import COMMAND_LINK, Digest
from services.writer.wording.extractors.diagnosis import diagnose
from services.writer.wording.extractors.finding import steady
from services.writer.wording.failure import UNKNOWN

DETAIL_CHARS_MAX = 300
TEXT_CHARS_MAX = 500
INDEX_CHARS_MAX = 4_000
SHOWN_CHARS_MAX = 800
LAST_LINES = 5
COMMANDS_MAX = 2
COMMAND_OUTPUT_CHARS_MAX = 160
HIGH, MEDIUM, LOW = 0.9, 0.6, 0.3

_LABELS = re.compile(r"^\[([^\]]*)\] (?:\[([^\]]*)\] )?")
_MARKUP = re.compile(r"`{3}.*?(?:`{3}|$)|[*`#]+", re.DOTALL)
_MERGE_CONFLICT = "merge conflict"
_SECURITY = re.compile(r"(?i)\bsecurity|vulnerab")
_SEPARATOR = re.compile(r"[_./:-]|(?<=[a-z])(?=[A-Z])")
_TYPES = (
    (_SECURITY, "SECURITY_VIOLATION"),
    (re.compile(r"\bconflict"), "MERGE_CONFLICT"),
    (re.compile(r"\b(?:sign off|signoff|approval|review)"), "REVIEW_REJECTION"),
    (re.compile(r"\b(?:ci|build|test|tests|deploy|pipeline|gate)\b"), "CI_FAILURE"),
)
"""What kind of failure another failure is, by its name."""


@dataclass(frozen=True, slots=True)
class Account:
    opening: str
    details: tuple[str, ...]
    basis: str
    confidence: float
    failure_type: str | None = None
    kind: str | None = None
    index_text: str = ""
    also: str = ""
    """How it begins where another account stands before it."""

    def render(self, chars_max: int) -> str:
        """The opening and as many whole details as fit."""
        text = self.opening[:chars_max]
        for detail in self.details:
            if len(text) + 1 + len(detail) <= chars_max:
                text = f"{text}\n{detail}"
        return text


def tell_ci_failure(log: str) -> Account:
    lines = read_log(log)
    diagnosis = diagnose(lines)
    kind = diagnosis.kind
    strong = any(line.score >= STRONG for line in lines)
    told = select_lines(lines, INDEX_CHARS_MAX // 2)
    shown = select_lines(_weighed(lines, diagnosis.lines), SHOWN_CHARS_MAX) or last_lines(lines, LAST_LINES)
    return Account(
        opening=diagnosis.render(),
        details=tuple(line.text for line in shown),
        basis="The end of the latest failing CI log" + (" states the error." if strong else " names no cause."),
        confidence=HIGH if strong else MEDIUM,
        failure_type="MERGE_CONFLICT" if kind.name == _MERGE_CONFLICT else "CI_FAILURE",
        kind=None if kind is UNKNOWN else kind.name,
        index_text="\n".join(line.text for line in told),
        also="CI failed as well: ",
    )


def _weighed(lines: Sequence[LogLine], stated: Sequence[str]) -> list[LogLine]:
    """What the sentence rests on comes before all else, and brings its neighbours along."""
    return [replace(line, score=line.score + STRONG) if line.text in stated else line for line in lines]


def tell_rejection(rejection: str) -> Account:
    lines = rejection.splitlines()
    findings = [(line, label) for line in lines if (label := _LABELS.match(line))]
    categories = [str(label[2]) for _, label in findings if label[2]]
    only_security = bool(categories) and all(map(_SECURITY.search, categories))
    named = ", ".join(dict.fromkeys(categories))[:TEXT_CHARS_MAX]
    first, *others = [shorten(line[label.end() :], DETAIL_CHARS_MAX) for line, label in findings] or [""]
    return Account(
        opening="the review asks for changes" + (f" ({named})" if named else "") + (f": {first}" if first else "."),
        details=tuple(others),
        basis="The latest rejection by the reviewers states the findings.",
        confidence=HIGH,
        failure_type="SECURITY_VIOLATION" if only_security else "REVIEW_REJECTION",
        kind="review",
        index_text=rejection[:INDEX_CHARS_MAX],
    )


def tell_other_failure(failure: OtherFailure) -> Account:
    """A gate or a step leaves a log, a person a few words."""
    name = _spoken(failure.kind)
    type_ = next((type_ for pattern, type_ in _TYPES if pattern.search(name)), None)
    if is_log(failure.text):
        told = tell_ci_failure(failure.text)
        basis = f"What the failed {name} printed."
        return replace(told, opening=f"{name} failed: {told.opening}", basis=basis, failure_type=type_, also="")
    said = shorten(failure.text, TEXT_CHARS_MAX)
    basis = f"What is on record of the failed {name}."
    return Account(f"{name} failed: {said}", (), basis, MEDIUM, type_, name, index_text=failure.text[:INDEX_CHARS_MAX])


def _spoken(kind: str) -> str:
    """`sign_off` and `signOff` as words."""
    return " ".join(_SEPARATOR.sub(" ", kind).split()).lower()


def tell_work(ticket: Ticket | None, change: ChangeEvidence | None, digest: Digest | None = None) -> Account:
    """Nothing was rejected: the ticket says what was asked, the notes what was done, transcripts what failed."""
    title = shorten((ticket and ticket.title) or "", DETAIL_CHARS_MAX)
    asked = shorten((ticket and ticket.description) or "", TEXT_CHARS_MAX)
    done = shorten((change and change.implementation_notes) or "", TEXT_CHARS_MAX)
    failed = _tell_commands(digest) if digest else []
    details = (f"Asked: {asked}" if asked else "", *failed, f"Done: {done}" if done else "")
    rests_on = "the ticket, the notes and the transcripts" if digest else "the ticket and the notes"
    return Account(
        opening=f"{title}." if title else "nothing was rejected on the way.",
        details=tuple(filter(None, details)),
        basis=f"No rejection and no CI failure is on record; this rests on {rests_on}.",
        confidence=LOW,
        index_text="\n".join((_raw(ticket, change), *failed)),
    )


def _tell_commands(digest: Digest) -> list[str]:
    """The latest failed commands, each once and in one line, without what changes from run to run."""
    parted = [entry.text.partition(COMMAND_LINK) for entry in digest.failed_commands]
    outputs = {command: output for command, _, output in parted}
    told = [_tell_command(command, output) for command, output in outputs.items()]
    return [f"Failed on the way: {text}" for text in told[-COMMANDS_MAX:]]


def _tell_command(command: str, output: str) -> str:
    said = " ".join(line.text for line in select_lines(read_log(output), COMMAND_OUTPUT_CHARS_MAX))
    return steady(shorten(f"{clean_line(command)} → {said}" if said else command, DETAIL_CHARS_MAX))


def tell_history(history: History) -> str:
    """How often the run failed before, and in which ways."""
    told: list[str] = []
    if history.ci_failures.total > 1:
        kinds = dict.fromkeys(diagnose(read_log(entry.text)).kind.name for entry in history.ci_failures.entries)
        told.append(f"CI failed {history.ci_failures.total} times: {', then '.join(kinds)}.")
    if history.rejections.total > 1:
        told.append(f"Reviewers rejected it {history.rejections.total} times.")
    return " ".join(told)


def _raw(ticket: Ticket | None, change: ChangeEvidence | None) -> str:
    asked = ((ticket and ticket.description) or "")[: INDEX_CHARS_MAX // 2]
    done = ((change and change.implementation_notes) or "")[: INDEX_CHARS_MAX // 2]
    return f"{asked}\n{done}".strip()


def shorten(text: str, chars_max: int) -> str:
    """One line without markup and quoted code."""
    plain = " ".join(_MARKUP.sub(" ", text[: chars_max * 4]).split())
    return plain if len(plain) <= chars_max else f"{plain[:chars_max]}…"
