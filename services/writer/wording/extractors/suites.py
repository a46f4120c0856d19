"""Test suites of Ruby, PHP, Perl, Haskell and Erlang."""

from collections.abc import Sequence

from services.writer.wording.extractors.finding import Finding, find_first, form

_KIND = "test assertion"
_MINITEST = r"^(?P<what>\S+#test_.+?) \[(?P<where>\S+):\d+\]"
_FORMS = (
    # A skipped test is printed in the same way, below another word.
    form(
        "minitest",
        r"^(?:Failure|Error):$",
        kind=_KIND,
        words="{what} fails",
        below=r"^(?P<error>(?:Expected|Failed|[\w:]*(?:Assertion|Error)\b).+)",
        place=_MINITEST,
        reach=3,
    ),
    form("minitest", r"^(?:Failure|Error):$", kind=_KIND, words="{what} fails", below=_MINITEST, reach=1),
    form("RSpec", r"^rspec (?P<where>\S+):\d+ # (?P<what>.+)", kind=_KIND, words="{what} fails"),
    form(
        "PHPUnit",
        r"^\d+\) (?P<what>[\w\\]+::\w+)",
        kind=_KIND,
        words="{what} fails",
        below=r"^(?P<error>[A-Z].+)",
        place=r"^(?P<where>\S+_?[Tt]est\.php):\d+",
    ),
    form("phpt", r"^FAIL (?P<what>.+) \[(?P<where>\S+\.phpt)\]", kind=_KIND, words="{what} fails"),
    form("Perl", r"^(?P<what>t/\S+\.t) \.+ (?P<error>(?!ok|skipped)\S.+)", kind=_KIND, words="{what} fails"),
    form("TAP", r"^not ok \d+ (?:- )?(?P<what>.+)", kind=_KIND, words="{what} fails"),
    form("tasty", r"^(?P<what>[\w '/-]+): FAIL$", kind=_KIND, words="{what} fails"),
    form(
        "Common Test",
        r"^(?P<what>\w+:\w+) failed on line \d+",
        kind=_KIND,
        words="{what} fails",
        below=r"^Reason: (?P<error>.+)",
    ),
)


def find_suites(texts: Sequence[str]) -> Finding | None:
    return find_first(_FORMS, texts)
