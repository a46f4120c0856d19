"""Which of many expressions may occur in a text, told in one pass.

An engine may name too many expressions and never too few: RE2 confirms each one that is named, so all engines lead to
the same verdicts and differ in speed alone. Hyperscan is several times as fast as RE2, but neither everywhere to be had
nor in every release to be trusted.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, cast

import re2  # pyright: ignore[reportMissingTypeStubs]

from services.gate.loosening import loosen
from services.gate.patterns import Pattern, PatternRejected, render_source

try:
    from services.gate import hyperscan_engine
except ImportError:
    hyperscan_engine = None

SET_EXPRESSIONS_MAX = 15
"""An automaton grows with the product of what its expressions are waiting for; a pass over the text costs little."""
SET_MEMORY_BYTES_MAX = 16 << 20

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
    """Sets of RE2: one automaton for some expressions each, built as texts ask for it.

    To be slow at first is therefore no fault. A set that is out of memory answers that nothing matches; its sentinel,
    which matches where any text ends, tells that from a clean text. Raises PatternRejected.
    """

    seconds_per_kib = 0.02

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        sources = [render_source(replace(pattern, source=loosen(pattern.source))) for pattern in patterns]
        starts = range(0, len(sources), SET_EXPRESSIONS_MAX)
        try:
            self._sets = [_Re2Set(start, sources[start : start + SET_EXPRESSIONS_MAX]) for start in starts]
        except _re2.error as error:
            raise PatternRejected(f"the patterns do not compile together: {error}") from error

    def find_candidates(self, text: bytes) -> Sequence[int] | None:
        found: list[int] = []
        for one in self._sets:
            numbers = one.find(text)
            if numbers is None:
                return None
            found += numbers
        return found


class _Re2Set:
    def __init__(self, start: int, sources: Sequence[str]) -> None:
        options = _re2.Options()
        options.max_mem = SET_MEMORY_BYTES_MAX
        options.never_capture = True
        options.log_errors = False
        self._start = start
        self._sentinel = len(sources)
        self._set = _re2.Set.SearchSet(options)
        for source in (*sources, r"\z"):
            self._set.Add(source)
        self._set.Compile()

    def find(self, text: bytes) -> list[int] | None:
        found = cast("list[int]", self._set.Match(text) or [])
        if self._sentinel not in found:
            return None
        return [self._start + number for number in found if number != self._sentinel]


def has_fast_engine() -> bool:
    """Whether there is one that is faster than RE2."""
    return hyperscan_engine is not None and hyperscan_engine.is_trustworthy()


def build_engine(patterns: Sequence[Pattern], shared: Sequence[Pattern] = ()) -> Engine:
    """The fastest there is. `shared` are patterns that most sets hold, for an engine that is slow to compile them."""
    if hyperscan_engine is None or not hyperscan_engine.is_trustworthy():
        return Re2Engine(patterns)
    return hyperscan_engine.HyperscanEngine(patterns, shared)
