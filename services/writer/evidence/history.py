"""How a run failed on its way: its rejections and CI failures, the latest five of each (spec 4.5).

A fix that changed nothing repeats the failure before it, which says nothing new. What stands between two others is
a failure that came back, which does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lorebus.contracts.runs import CiAttempt, ReviewAttempt, RunFinished

from services.writer.evidence.attempts import in_time_order, last_tries
from services.writer.evidence.bounds import TEXT_CHARS_MAX, keep_head, keep_tail
from services.writer.evidence.rejection import render_rejection

ROWS_MAX = 60
ENTRIES_MAX = 5
ENTRY_CHARS_MAX = 1_500


@dataclass(frozen=True, slots=True)
class Entry:
    """`number`: its true place among all of its kind, from 1."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Strand:
    """The attempts of one kind that are told, and how many earlier ones are not."""

    entries: tuple[Entry, ...] = ()
    omitted: int = 0

    @property
    def total(self) -> int:
        return len(self.entries) + self.omitted


@dataclass(frozen=True, slots=True)
class History:
    rejections: Strand
    ci_failures: Strand

    def render(self) -> dict[str, Any]:
        """As the writer's model reads it."""
        return {
            "rejections": _render(self.rejections),
            "rejectionsOmitted": self.rejections.omitted,
            "ciFailures": _render(self.ci_failures),
            "ciFailuresOmitted": self.ci_failures.omitted,
        }

    def counts(self) -> dict[str, int]:
        """For the citation."""
        return {"review_rejections": self.rejections.total, "ci_failures": self.ci_failures.total}


def build_history(run: RunFinished) -> History | None:
    """None where no kind of failure came more than once: the latest evidence says it all."""
    history = History(
        rejections=_strand(find_rejections(run.reviews), keep_head),
        ci_failures=_strand(find_ci_failures(run.ci_failures), keep_tail),
    )
    return history if max(history.rejections.total, history.ci_failures.total) > 1 else None


def find_rejections(reviews: Sequence[ReviewAttempt]) -> list[str]:
    """Each dispatch that rejected, in the words that its fix was given. Of a full page the oldest may be cut off."""
    dispatches = last_tries(in_time_order(reviews)[-ROWS_MAX:])
    whole = dispatches[1:] if len(reviews) >= ROWS_MAX else dispatches
    return [text for rows in whole if (text := render_rejection(rows))]


def find_ci_failures(failures: Sequence[CiAttempt]) -> list[str]:
    """Each failing log; one whose end repeats that of the log before it is left out."""
    tries = last_tries(in_time_order(failures)[-ROWS_MAX:])
    logs = [rows[-1].log_tail for rows in tries if rows[-1].log_tail.strip()]
    ends = ["", *(log[-TEXT_CHARS_MAX:] for log in logs)]
    return [log for log, end, before in zip(logs, ends[1:], ends, strict=False) if end != before]


def _strand(texts: Sequence[str], keep: Callable[[str, int], str]) -> Strand:
    omitted = max(0, len(texts) - ENTRIES_MAX)
    kept = texts[omitted:]
    share = min(ENTRY_CHARS_MAX, TEXT_CHARS_MAX // max(1, len(kept)))
    return Strand(tuple(Entry(omitted + place, keep(text, share)) for place, text in enumerate(kept, 1)), omitted)


def _render(strand: Strand) -> list[dict[str, Any]]:
    return [{"number": entry.number, "text": entry.text} for entry in strand.entries]
