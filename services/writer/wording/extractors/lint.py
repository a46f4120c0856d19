"""Linters and checks of the source."""

import re
from collections.abc import Sequence

from services.writer.wording.extractors.finding import ERROR_CHARS_MAX, Finding, clip, find_first, form

_KIND = "lint"
_FORMS = (
    form("perlcritic", r"^(?P<error>.+?) at line \d+, column \d+\. .*\(Severity: \d\)", kind=_KIND),
    form("mypy", r"^(?P<where>\S+\.pyi?):\d+(?::\d+)?: error: (?P<error>.+)", kind=_KIND),
    form("rubocop", r"^(?P<where>\S+\.rb):\d+:\d+: [CWEF]: (?P<error>.+)", kind=_KIND),
    form("", r"^(?P<where>[^\s:]+\.\w+):\d+(?::\d+)?:? (?P<error>[A-Z]{1,7}\d{2,5}:? .+)", kind=_KIND),
    # A parser of the linter gave up: it names the file below, with no place in it.
    form(
        "standard",
        r"^(?P<error>Unexpected token \w+)$",
        kind=_KIND,
        below=r"^(?P<where>[^\s:]+\.[cm]?[jt]sx?):0:0: ",
        reach=3,
    ),
    form("standard", r"^(?P<where>[^\s:]+\.[cm]?[jt]sx?):\d+:\d+: (?P<error>.+)", kind=_KIND),
    form("lintrunner", r"^(?:error|warning): (?P<error>Use of .+ detected)", kind=_KIND),
    form("black", r"^(?P<error>would reformat \S+)", kind=_KIND),
)
_ESLINT = re.compile(r"^\d+:\d+ error (?P<error>.+)")
_FILE = re.compile(r"^\S+\.(?:[cm]?[jt]sx?|vue|svelte|css|scss)$")
_SCRIPT = re.compile(r"^\^-{2,} failure generated from (?P<where>\S+)")
_SCRIPT_LINES = 8


def find_lint(texts: Sequence[str]) -> Finding | None:
    return find_script(texts) or find_eslint(texts) or find_first(_FORMS, texts)


def find_eslint(texts: Sequence[str]) -> Finding | None:
    """The file stands alone in a line above its findings."""
    where = ""
    for text in texts:
        if _FILE.match(text):
            where = text
        elif where and (said := _ESLINT.match(text)):
            return Finding("eslint", "", clip(said["error"], ERROR_CHARS_MAX), where, _KIND, (where, text))
    return None


def find_script(texts: Sequence[str]) -> Finding | None:
    """A line below the output of a check names its script; the complaint is the line above that introduces a list."""
    for index, text in enumerate(texts):
        if named := _SCRIPT.match(text):
            above = texts[max(0, index - _SCRIPT_LINES) : index]
            said = next((line for line in above if line.endswith(":")), text)
            return Finding("", "", clip(said, ERROR_CHARS_MAX), named["where"], _KIND, (said, text))
    return None
