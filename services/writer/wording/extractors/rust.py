"""cargo, rustc, clippy, and programs that panic."""

from collections.abc import Sequence

from services.writer.wording.extractors.finding import Finding, find_first, form

_PLACE = r"^--> (?P<where>[^\s:]+):\d+"
_FORMS = (
    form("rustc", r"^error\[E\d+\]: (?P<error>.+)", kind="compile error", place=_PLACE),
    # Of rustc itself or of clippy, whose lints have no number.
    form("rustc", r"^error: (?P<error>(?!aborting due).+)", kind="compile error", below=_PLACE, reach=3),
    form(
        "cargo test",
        r"^---- (?P<what>\S+) stdout ----$",
        kind="test assertion",
        words="{what} fails",
        below=r"(?P<error>assert.+|panicked at .+)",
    ),
    form(
        "cargo",
        r"^thread '(?P<what>[^']+)'.* panicked at '(?P<error>.+?)(?:', (?P<where>[^\s:]+)|$)",
        kind="crash",
        words="thread {what} panics",
    ),
    form(
        "cargo",
        r"^thread '(?P<what>[^']+)'.* panicked at (?P<where>[^\s:]+):\d+",
        kind="crash",
        words="thread {what} panics",
        below=r"^(?P<error>\S.+)",
    ),
    form(
        "cargo",
        r"^error: [Cc]ould not compile `(?P<what>[^`]+)`",
        kind="compile error",
        words="crate {what} does not compile",
    ),
)


def find_rust(texts: Sequence[str]) -> Finding | None:
    return find_first(_FORMS, texts)
