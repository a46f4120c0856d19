"""Test runners of JavaScript: mocha, jest, vitest."""

import re
from collections.abc import Sequence
from itertools import takewhile

from services.writer.wording.extractors.finding import ERROR_CHARS_MAX, NAME_CHARS_MAX, Finding, clip, find_first, form

_KIND = "test assertion"
_THROWN = r"^(?P<error>(?:Uncaught )?\w*(?:Error|Exception)\b.*?: .+|expect\(.+|Exceeded timeout .+|thrown: .+)"
_JEST = (
    form(
        "jest",
        r"^● Test suite failed to run$",
        kind=_KIND,
        words="a test suite cannot be loaded",
        below=r"^(?P<error>(?:\w*Error: |Cannot find ).+)",
        place=r"^(?:> \d+ \| |at .*\()(?P<where>[^\s():]+\.[cm]?[jt]sx?):\d+",
    ),
    form("jest", r"^● (?P<what>.+ › .+)$", kind=_KIND, words="{what} fails", below=_THROWN),
    form("vitest", r"^FAIL +(?P<what>\S+\.\w+ > .+)$", kind=_KIND, words="{what} fails", below=_THROWN),
)
_FAILING = re.compile(r"^\d+ failing$")
_NUMBER = re.compile(r"^\d+\) ?")
_MOCHA_ERROR = re.compile(r"^(?:Uncaught )?\w*(?:Error|Exception)\b.*?: ")
_TITLE_LINES_MAX = 5


def find_jest(texts: Sequence[str]) -> Finding | None:
    return find_first(_JEST, texts)


def find_mocha(texts: Sequence[str]) -> Finding | None:
    """The first of mocha's list: the title takes a line for each suite around the test, the error follows."""
    start = next((index for index, text in enumerate(texts) if _FAILING.match(text)), None)
    if start is None:
        return None
    after = texts[start + 1 :]
    titles = list(takewhile(lambda text: not _MOCHA_ERROR.match(text), after[: _TITLE_LINES_MAX + 1]))
    if not 0 < len(titles) <= min(_TITLE_LINES_MAX, len(after) - 1):
        return None
    name = " ".join(_NUMBER.sub("", title).rstrip(":") for title in titles)
    return Finding(
        tool="mocha",
        what=f"{clip(name, NAME_CHARS_MAX)} fails",
        error=clip(after[len(titles)], ERROR_CHARS_MAX),
        kind=_KIND,
        lines=tuple(after[: len(titles) + 1]),
    )
