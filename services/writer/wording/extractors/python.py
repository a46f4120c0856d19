"""pytest, and unittest with its kin (nose, trial)."""

from collections.abc import Sequence

from services.writer.wording.extractors.finding import Finding, find_first, form

_KIND = "test assertion"
_RAISED = r"^(?P<error>(?:\w+\.)*\w*(?:Error|Exception|Failure|Exit|Interrupt|Warning)(?:: .+|:?$))"
_QUOTED = r"^E\s+(?P<error>\w.+)"
_PLACE = r"^(?P<where>[^\s:]+\.py):\d+: (?:in )?\w+"

_PYTEST = (
    form(
        "pytest",
        r"^_{3,} ERROR collecting (?P<what>\S+) _{3,}",
        kind=_KIND,
        words="{what} cannot be collected",
        below=_QUOTED,
    ),
    form(
        "pytest",
        r"^(?:FAILED|ERROR) (?P<what>\S+\.py(?:::\S+)?) - (?P<error>.+)",
        kind=_KIND,
        words="{what} fails",
    ),
    form(
        "pytest",
        r"^_{3,} (?P<what>[\w.]+(?:\[[^\]]*\])?) _{3,}$",
        kind=_KIND,
        words="{what} fails",
        below=_QUOTED,
        place=_PLACE,
    ),
    form("pytest", r"^(?:FAILED|ERROR) (?P<what>\S+\.py::\S+)", kind=_KIND, words="{what} fails"),
    # The heading of the test lies before the part of the log that was kept.
    form(
        "pytest",
        r"^E\s+(?P<error>(?:\w+\.)*\w+(?:Error|Exception|Failure): .+)",
        kind=_KIND,
        words="a test fails",
        place=_PLACE,
    ),
)
_UNITTEST_HEADING = r"^(?:FAIL|ERROR): (?P<what>[\w.]+(?: \([\w.]+\))?)$"
_UNITTEST = (
    form("unittest", _UNITTEST_HEADING, kind=_KIND, words="{what} fails", below=_RAISED),
    form("unittest", _UNITTEST_HEADING, kind=_KIND, words="{what} fails"),
)


def find_pytest(texts: Sequence[str]) -> Finding | None:
    return find_first(_PYTEST, texts)


def find_unittest(texts: Sequence[str]) -> Finding | None:
    return find_first(_UNITTEST, texts)
