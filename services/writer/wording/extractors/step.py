"""The step that failed, as the CI service, make or npm names it: all that is known where no tool says more."""

from collections.abc import Sequence

from services.writer.wording.extractors.finding import Finding, find_first, form

_FORMS = (
    form("npm", r"^npm (?:ERR!|error) (?P<what>\S+ \w[\w:-]*: `.+`)$", words="script {what} fails"),
    form(
        "",
        r'^The command "(?P<what>.+?)"? (?:exited with [1-9]|failed \d times|failed and exited)',
        words="the command `{what}` fails",
    ),
    form(
        "", r'^The command "(?P<what>[^"]+)$', words="the command `{what}` fails", below='^" exited with [1-9]', reach=3
    ),
    form("", r"The '(?P<what>[^']+)' test step finished with a non-zero", words="the step {what} fails"),
    form("make", r"^make(?:\[\d+\])?: \*\*\* \[(?:\S+: )?(?P<what>[^\]]+)\] Error \d+", words="target {what} fails"),
    form("", r"Process completed with exit code (?P<what>[1-9]\d*)", words="a step ends with exit code {what}"),
    form("", r"Error: The command exited with status (?P<what>[1-9]\d*)", words="a step ends with exit code {what}"),
)


def find_step(texts: Sequence[str]) -> Finding | None:
    return find_first(_FORMS, texts)
