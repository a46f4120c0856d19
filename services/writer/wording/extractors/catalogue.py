"""Which extractors there are, in the order in which their findings stand for a cause.

A limit or a missing package explains a file that does not compile, and that a failed test. A linter, a time-out, a
network error and the named step come last: they also stand beside other failures.
"""

from collections.abc import Sequence

from services.writer.wording.extractors.finding import Extractor, Finding
from services.writer.wording.extractors.go import find_go
from services.writer.wording.extractors.javascript import find_jest, find_mocha
from services.writer.wording.extractors.jvm import find_jvm
from services.writer.wording.extractors.limits import find_memory, find_network, find_timeout
from services.writer.wording.extractors.lint import find_lint
from services.writer.wording.extractors.native import find_native
from services.writer.wording.extractors.packages import find_packages
from services.writer.wording.extractors.python import find_pytest, find_unittest
from services.writer.wording.extractors.rust import find_rust
from services.writer.wording.extractors.step import find_step
from services.writer.wording.extractors.suites import find_suites

TESTS: tuple[Extractor, ...] = (
    find_pytest,
    find_unittest,
    find_mocha,
    find_jest,
    find_go,
    find_rust,
    find_jvm,
    find_suites,
)
"""Build and test come from one tool in Go, Rust and on the JVM, and so does what they report."""
CAUSES: tuple[Extractor, ...] = (
    find_memory,
    find_packages,
    find_native,
    *TESTS,
    find_lint,
    find_timeout,
    find_network,
)


def find_causes(texts: Sequence[str]) -> list[Finding]:
    return [found for find in CAUSES if (found := find(texts))]


def find_effect(texts: Sequence[str], cause: Finding) -> Finding | None:
    """What the cause led to: the failed test, or the failed step when the cause is itself a tool's report."""
    tests = () if cause.tool else (found for find in TESTS if (found := find(texts)))
    led_to = (found for found in (*tests, find_step(texts)) if found)
    return next((found for found in led_to if not set(found.lines) & set(cause.lines)), None)
