"""Lines of a build log without their framing, and the few of them that tell about a failure.

A log is mostly noise. The writer stores, and the query asks with, only the lines that look like a failure, so both
must read a log in the same way.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from libs.common.domain.log_forms import STRONG, score_line

LOG_CHARS_MAX = 16_000
"""Of a longer log only the end is read: a failure is reported last."""
LINE_CHARS_MAX = 300
LINES_MAX = 1_000

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_FRAMING = re.compile(
    r"travis_(?:time|fold):[^\s\x1b]*|##\[(?:end)?(?:group|section|command|debug)\]"
    r"|##\[(?:start|end)-action\b[^\]]*\]?|\b_bk;t=\d+\x07?|^(?:~~~|\+\+\+|\^\^\^) "
)
_MARKED = re.compile(r"^::(error|warning)\b[^:]*::|##\[(error|warning)\]")
_TIMESTAMP = re.compile(
    r"^\s*\[?(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:[.,]\d+)?|\d\d:\d\d:\d\d(?:[.,]\d+)?)\]?(?: |$)"
)
_OMITTED = re.compile(r"^\[\d+ characters omitted\] …$")
_CHANGING = (
    # Where a CI service checks out, whose home it is, where temporary files go.
    (re.compile(r"(?<!\S)\S*[\\/]_work[\\/](?:[^\\/\s]+[\\/]){2}"), ""),
    (re.compile(r"/(?:home|Users)/[^/\s]+/(?:build|work|workspace|project|src)/(?:[^/\s]+/[^/\s]+/)?"), ""),
    (re.compile(r"/(?:home|Users)/[^/\s]+/"), "~/"),
    (re.compile(r"(?:/var/folders|/private/tmp|/tmp)/[^\s:'\"]*/"), ""),
    # Ids, hashes, addresses, process ids, durations.
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "…"),
    (re.compile(r"\b0x[0-9a-fA-F]{4,}\b|\b(?=[0-9a-f]*\d)[0-9a-f]{12,}\b"), "…"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9]*[a-f])[0-9a-f]{7,}\b|<\d+\.\d+\.\d+>|(?<![\d.])\d{9,}(?!\d)"), "…"),
    (re.compile(r"\b(pid|process)[ =:#]+\d{3,}", re.IGNORECASE), r"\1 …"),
    (re.compile(r"\b(\d{1,3}(?:\.\d{1,3}){3}|localhost):[1-9]\d{4}\b"), r"\1:…"),
    (re.compile(r"\b\d{4}[-/]\d\d[-/]\d\d[T _]\d\d[:_]\d\d[:_]\d\d(?:[.,_]\d+)?Z? ?"), ""),
    (re.compile(r"\s*\((?:\d+m ?)?\d+(?:\.\d+)? ?m?s\)| in \d+(?:\.\d+)? ?m?s(?:econds)?\b"), ""),
    # A round figure may be a limit, and so the cause.
    (re.compile(r"(?<![\w.])\d+\.\d+ ?(?:ms|[uμ]s|s|seconds?)\b|\bin \d+m ?\d+s\b"), ""),
    (re.compile(r"(?<!timed out) after \d+ ?(?:ms|s|min)$"), ""),
    (re.compile(r"[\x00-\x08\x0e-\x1f\x7f]"), ""),
    (re.compile(r"\s+"), " "),
)
_PROSE = re.compile(r"^\s*(?:[-*#>] ?|\d+\. )?[A-Za-z][^{}\[\]=]*(?: [^\s]+){5,}[.?!:]?\s*$")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line without its framing, where it stood, and how strongly it speaks of a failure."""

    position: int
    text: str
    score: int


def clean_line(raw: str) -> str:
    """The line without colours, timestamps, framing of the CI service, and tokens that change with every run."""
    text = _ANSI.sub("", _FRAMING.sub("", raw[: LINE_CHARS_MAX * 4]))
    text = _MARKED.sub(lambda mark: f"{mark[1] or mark[2]}: ", _TIMESTAMP.sub("", text))
    for pattern, replacement in _CHANGING:
        text = pattern.sub(replacement, text)
    text = text.strip()
    return text if len(text) <= LINE_CHARS_MAX else f"{text[:LINE_CHARS_MAX]}…"


def read_log(log: str) -> list[LogLine]:
    """The last lines of a log, cleaned and scored; empty ones and repeats are left out."""
    pieces = _whole_lines(log)
    lines: list[LogLine] = []
    seen: set[str] = set()
    for position, text in enumerate(map(clean_line, pieces)):
        shape = re.sub(r"\d+", "0", text)
        if len(shape) > 2 and shape not in seen:
            seen.add(shape)
            lines.append(LogLine(position, text, score_line(text)))
    return lines


def _whole_lines(log: str) -> list[str]:
    """The last lines, without the rest of one that the writer's own bound cut off."""
    pieces = re.split(r"[\r\n]+", log[-LOG_CHARS_MAX:])[-LINES_MAX:]
    was_cut = len(pieces) > 2 and _OMITTED.match(pieces[0])
    return pieces[2:] if was_cut else pieces


def select_lines(lines: Sequence[LogLine], chars_max: int, weight_min: float = 0.5) -> list[LogLine]:
    """The lines that tell most, within the bound, in their order: strongest first, of equals the later ones.

    By default what stands beside a strong line comes along as its context; a higher bar leaves that out.
    """
    weighted = sorted(_with_neighbours(lines), key=lambda pair: (-pair[0], -pair[1].position))
    kept: list[LogLine] = []
    left = chars_max
    for weight, line in weighted:
        if weight >= weight_min and len(line.text) + 1 <= left:
            kept.append(line)
            left -= len(line.text) + 1
    return sorted(kept, key=lambda line: line.position)


def last_lines(lines: Sequence[LogLine], count: int) -> list[LogLine]:
    """What a log ends with, for a log that names no failure."""
    return [line for line in lines if line.score >= 0][-count:]


def _with_neighbours(lines: Sequence[LogLine]) -> Iterator[tuple[float, LogLine]]:
    """A plain line right after a strong one is often its detail, one right before it its heading."""
    for index, line in enumerate(lines):
        before = max((other.score for other in lines[max(0, index - 2) : index]), default=0)
        after = lines[index + 1].score if index + 1 < len(lines) else 0
        lift = 1.5 if before >= STRONG else 1.0 if after >= STRONG else 0.0
        yield (line.score + lift if line.score >= 0 else line.score), line


def is_log(text: str) -> bool:
    """Several lines, one of them a failure's, and mostly not sentences of a person."""
    lines = list(islice((line for line in text[-LOG_CHARS_MAX:].splitlines() if line.strip()), LINES_MAX))
    if len(lines) < 3:
        return False
    prose = sum(1 for line in lines if _PROSE.match(line[:LINE_CHARS_MAX]))
    return prose * 2 < len(lines) and any(score_line(clean_line(line)) >= STRONG for line in lines)
