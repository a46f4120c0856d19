"""Which of many expressions may occur in a text, told in one pass.

An engine may name too many expressions and never too few: RE2 confirms each one that is named, so all engines lead to
the same verdicts and differ in speed alone. Hyperscan is several times as fast as RE2, but neither everywhere to be had
nor in every release to be trusted.
"""

from collections.abc import Sequence
from typing import Any, Protocol, cast

import re2  # pyright: ignore[reportMissingTypeStubs]

from services.gate.patterns import Pattern, PatternRejected, render_source

try:
    from services.gate import hyperscan_engine
except ImportError:
    hyperscan_engine = None

MEMORY_BYTES_MAX = 64 << 20

_re2 = cast(Any, re2)  # google-re2 ships no types


class Engine(Protocol):
    """Any thread may ask at any time."""

    @property
    def seconds_per_kib(self) -> float:
        """CPU time that a scan may take; beyond it something is wrong with an expression."""
        ...

    def find_candidates(self, text: bytes) -> Sequence[int] | None:
        """Numbers of the expressions that may match this UTF-8 text; None when the engine did not read all of it."""
        ...


class Re2Engine:
    """A set of RE2: one automaton for all expressions, built as texts ask for it.

    To be slow at first is therefore no fault. One that is out of memory answers that nothing matches; the sentinel,
    which matches where any text ends, tells that from a clean text. Raises PatternRejected.
    """

    seconds_per_kib = 0.02

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        options = _re2.Options()
        options.max_mem = MEMORY_BYTES_MAX
        options.never_capture = True
        options.log_errors = False
        self._set = _re2.Set.SearchSet(options)
        self._sentinel = len(patterns)
        try:
            for source in (*map(render_source, patterns), r"\z"):
                self._set.Add(source)
            self._set.Compile()
        except _re2.error as error:
            raise PatternRejected(f"the patterns do not compile together: {error}") from error

    def find_candidates(self, text: bytes) -> Sequence[int] | None:
        found = cast("list[int]", self._set.Match(text) or [])
        if self._sentinel not in found:
            return None
        found.remove(self._sentinel)
        return found


def build_fast_engine(patterns: Sequence[Pattern]) -> Engine | None:
    """One that is faster than RE2, which may take seconds; None where there is none."""
    if hyperscan_engine is None or not hyperscan_engine.is_trustworthy():
        return None
    return hyperscan_engine.HyperscanEngine(patterns)
