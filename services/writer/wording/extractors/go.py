"""go build, go vet, go test and modules."""

from collections.abc import Sequence

from services.writer.wording.extractors.finding import Finding, find_first, form

_TEST = "test assertion"
_FORMS = (
    form(
        "go",
        r"^(?:vet: )?(?P<where>(?:\.{0,2}/)?[\w./-]+\.go):\d+:\d+: (?:fatal error: )?(?P<error>.+)",
        kind="compile error",
    ),
    form(
        "go",
        r"^go: (?P<error>.+(?:missing|not found|unknown revision|invalid|no matching).*)",
        kind="dependency resolution",
    ),
    form(
        "go test",
        r"^--- FAIL: (?P<what>[^\s/]+)",
        kind=_TEST,
        words="{what} fails",
        below=r"^(?P<where>\w+\.go):\d+: (?P<error>\S.+)",
    ),
    form(
        "go test",
        r"^--- FAIL: (?P<what>\S+)",
        kind=_TEST,
        words="{what} fails",
        below=r"^Error: (?P<error>.+)",
        place=r"(?P<where>\w+_test\.go):\d+",
    ),
    form("go test", r"^--- FAIL: (?P<what>\S+)", kind=_TEST, words="{what} fails"),
    form("go test", r"^(?P<where>\w+_test\.go):\d+: (?P<error>\S.+)", kind=_TEST, words="a test fails"),
    form("go", r"^panic: (?P<error>.+)", kind="crash", words="the program panics"),
    form(
        "go test",
        r"^FAIL (?P<what>[\w.-]+/[\w./-]+)(?: \[(?P<error>\w+ failed)\]| \d|$)",
        kind=_TEST,
        words="package {what} fails",
    ),
)


def find_go(texts: Sequence[str]) -> Finding | None:
    return find_first(_FORMS, texts)
