"""What lines of a failure look like: general forms of compilers, test runners, shells and package managers.

A form has a weight: how much a line of this form tells about a failure, or below zero, how surely it does not.
A further tool is one more row.
"""

import re
from dataclasses import dataclass

STRONG = 4
"""At this score a line states a failure by itself."""


@dataclass(frozen=True, slots=True)
class LineForm:
    weight: int
    pattern: re.Pattern[str]


def _form(weight: int, *alternatives: str) -> LineForm:
    return LineForm(weight, re.compile("|".join(alternatives)))


def _any_case(weight: int, *alternatives: str) -> LineForm:
    return LineForm(weight, re.compile("|".join(alternatives), re.IGNORECASE))


_TELLING: tuple[LineForm, ...] = (
    _form(5, r"\b[A-Z]\w*(?:Error|Exception|Failure)\b[^=]", r"\bpanic(?:ked)?\b", r"\bSegmentation fault"),
    _any_case(5, r"\b(?:fatal )?error(?: ?\[?[A-Z]{0,4}\d+\]?)?:", r"^error\b", r"^\[error\]"),
    _form(5, r"^E\s+\S", r"^E: ", r"\bFAIL(?:ED|URE)\b", r"^(?:--- FAIL|FAIL|not ok)\b", r"^[✗✖✘×●] "),
    _any_case(4, r"no such (?:file|module|package|host)", r"permission denied", r"not authorized", r"forbidden"),
    _any_case(4, r"\b(?:cannot|can't|could not|couldn't|unable to|failed to|failure to|refused|refusing)\b"),
    _any_case(4, r"\bnot (?:found|allowed|defined|available|supported|installed|resolve|declared|executable)\b"),
    _any_case(4, r"\b(?:missing|undefined|undeclared|unresolved|unsupported|invalid|unexpected|unknown)\b"),
    _any_case(4, r"time[ds]?[ -]?out", r"deadline exceeded", r"rate limit", r"out of memory", r"no space left"),
    _any_case(4, r"\b(?:expected|mismatch|exceeds|exceeded|denied|rejected|killed)\b", r"\bassert", r"\bconflict"),
    _any_case(4, r"already in use", r"^(?:= )?(?:note|help|hint): "),
    _any_case(
        3, r"\bexit(?:ed)?(?: with)?(?: (?:code|status))?:? ?[1-9]\d*\b", r"\breturned (?:a )?[1-9]", r"\*\*\* \["
    ),
    _any_case(3, r"^\S+\.\w{1,5}:\d+(?::\d+)?:? ", r"\bline \d+\b", r"^\d+\) "),
    _any_case(3, r"\bfail(?:s|ed|ing|ure|ures)?\b", r"\berrors?\b", r"\bERR!", r"\bplease\b", r"^caused by"),
    _any_case(2, r"\bwarn(?:ing)?\b", r"\bcrash", r"\babort", r"\bmust\b", r"\bshould\b", r"\b(?:40[134]|50[0234])\b"),
)

_QUIET: tuple[LineForm, ...] = (
    # A green step or test.
    _any_case(
        -6, r"\b0 (?:errors?|failures?|failed)\b(?!.*\b[1-9]\d* (?:error|fail))", r"\b(?:errors?:|exited with) 0\b"
    ),
    _form(-6, r"^(?:ok|PASS(?:ED)?|--- PASS|=== RUN|[✓✔√])(?: |$)", r"\b(?:PASSED|SKIPPED|OK)(?: [\[(].*)?$"),
    _form(-6, r": \d+ ?ms$"),
    # What a CI service and npm say around every failure, and figures of progress.
    _any_case(-5, r"^(?:store build cache|changes detected|nothing changed|uploading archive|running casher)"),
    _any_case(
        -5,
        r"^npm err(?:!|or)(?:$| (?:linux|darwin|windows|argv|node v|npm v|errno|exit status|code elifecycle|~?/|npm ))",
        r"^npm err(?:!|or) (?:this is (?:most likely|probably)|not with|tell the|you can get|or if|there is likely)",
        r"^npm err(?:!|or) (?:please include|a complete log)",
    ),
    _any_case(-5, r"\d [kmg]?i?b/s\b|\d tests/s\b", r"^- \w+#test_"),
    # A stack frame, a shell's trace, a long command, a progress display.
    _form(-5, r"^at [\w.$<]+[(/ ]", r"^\+{1,2} ?\S", r"^\$ ", r"^(?:Compiling|Downloading|Installing|Requirement) "),
    _form(-3, r"(?: --?\w[\w-]*(?:[= ]\S+)?){5}"),
    # A compiler's excerpt of the source, and what it says of its own macros.
    _form(-6, r"^(?:LL|\d+) [|+-](?: |$)", r"^\| ", r"note: this (?:error|warning) originates in"),
    # A source line that a traceback quotes.
    _form(-3, r"^(?:> +)?(?:raise|except|if|elif|else|return|def|for|while|try|throw|catch|case)\b.*[():;{]"),
    # A probe, a warning, a remark.
    _any_case(-3, r"^(?:-- )?(?:looking|checking) for\b", r"^(?:npm |\[)?warn(?:ing)?\b", r"\w+warning:"),
    _any_case(
        -4, r"^(?!\[?error\b).*deprecat", r"^\[?(?:info|debug)\b", r"your build exited with", r"for possible reasons"
    ),
)


def score_line(text: str) -> int:
    """The best of what speaks for a failure, less what speaks most against it."""
    telling = max((form.weight for form in _TELLING if form.pattern.search(text)), default=0)
    return telling + min((form.weight for form in _QUIET if form.pattern.search(text)), default=0)
