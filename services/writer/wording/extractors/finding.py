"""What a tool says of a failure, and how that is read from a log.

Most tools report alike: a heading names what failed, and the lines below it say why and where. A `Form` describes
one such report; a family is a few forms, the most telling first. The lines come cleaned and cut (`log_lines`), so
that no pattern ever sees more than a few hundred characters.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

NAME_CHARS_MAX = 120
ERROR_CHARS_MAX = 220
REACH_LINES = 30
"""So far below a heading its error is looked for."""

_CHANGING = (
    # Line numbers move with every edit of a file, versions with every release, figures with every run.
    (re.compile(r"(\.\w{1,6}):\d+(?::\d+)?(?=[\s,;:)'\"]|$)"), r"\1"),
    (re.compile(r"(?:[:,]| at)? line \d+(?:,? col(?:umn)?\.? \d+)?"), ""),
    (re.compile(r"(?<=\w)@\d[\w.-]*"), ""),
    (re.compile(r"[^\s('\"]*/(?:site|dist)-packages/"), ""),
    (re.compile(r"\b\d{1,3}(?:,\d{3})+\b|(?<!\d)\d{8,}(?!\d)"), "…"),
    (re.compile(r"\s+"), " "),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """`what` failed as a clause ("test_a fails"), why in the tool's own words (`error`), and in which file."""

    tool: str
    what: str = ""
    error: str = ""
    where: str = ""
    kind: str = ""
    """The kind of failure that such a report is of itself, by its name in `failure`."""
    lines: tuple[str, ...] = ()
    """The lines of the log that say so."""

    def render(self) -> str:
        """One clause, without the tokens that would tell two runs with one cause apart."""
        what = ": ".join(filter(None, (self.tool, self.what)))
        place = f" ({self.where})" if self.where and self.where not in what else ""
        return steady(": ".join(filter(None, (f"{what}{place}".strip(), self.error))))


Extractor = Callable[[Sequence[str]], Finding | None]


@dataclass(frozen=True, slots=True)
class Form:
    """How a tool reports one failure. The patterns give `what`, `error` and `where` as named groups."""

    tool: str
    heading: re.Pattern[str]
    kind: str
    words: str
    below: re.Pattern[str] | None
    """One of the lines below the heading; without it the form does not fit."""
    place: re.Pattern[str] | None
    """A line below that may be missing."""
    reach: int


def form(
    tool: str,
    heading: str,
    *,
    kind: str = "",
    words: str = "",
    below: str = "",
    place: str = "",
    reach: int = REACH_LINES,
) -> Form:
    below_pattern, place_pattern = (re.compile(text) if text else None for text in (below, place))
    return Form(tool, re.compile(heading), kind, words, below_pattern, place_pattern, reach)


def steady(text: str) -> str:
    """The text without what changes from run to run although the failure is the same."""
    for pattern, replacement in _CHANGING:
        text = pattern.sub(replacement, text)
    return text.strip()


def find_first(forms: Iterable[Form], texts: Sequence[str]) -> Finding | None:
    """By the first form that fits a line: the forms go from telling to vague, the lines from first to last."""
    return next((found for one in forms if (found := _find(one, texts))), None)


def _find(one: Form, texts: Sequence[str]) -> Finding | None:
    headed = ((index, match) for index, text in enumerate(texts) if (match := one.heading.search(text)))
    return next((found for index, match in headed if (found := _read(one, match, texts[index + 1 :]))), None)


def _read(one: Form, heading: re.Match[str], after: Sequence[str]) -> Finding | None:
    block = list(takewhile(lambda text: not one.heading.search(text), after[: one.reach]))
    below, place = _first(one.below, block), _first(one.place, block)
    if one.below and not below:
        return None
    found = [match for match in (heading, below, place) if match]
    parts = {name: part for match in found for name, part in match.groupdict().items() if part}
    return Finding(
        tool=one.tool,
        what=one.words.format(what=clip(parts.get("what", ""), NAME_CHARS_MAX)),
        error=clip(parts.get("error", ""), ERROR_CHARS_MAX),
        where=parts.get("where", ""),
        kind=one.kind,
        lines=tuple(match.string for match in found),
    )


def _first(pattern: re.Pattern[str] | None, texts: Iterable[str]) -> re.Match[str] | None:
    return next((match for text in texts if (match := pattern.search(text))), None) if pattern else None


def clip(text: str, chars_max: int) -> str:
    plain = text.strip().rstrip(":.")
    return plain if len(plain) <= chars_max else f"{plain[:chars_max]}…"
