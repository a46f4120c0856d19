"""All expressions in one Hyperscan database: some microseconds for a kilobyte, however many expressions there are.

Importing this fails where Hyperscan has no wheel; `engine` then does without. A database takes seconds to build, and
building one lets other threads run, as a scan does.

The trap: most wheels hold Vectorscan, and its releases 5.4.11 and 5.4.12 miss matches, some of them everywhere behind
the first 15 bytes (VectorCamp/vectorscan issues 317, 358 and 382). Intel's own 5.4.2 does not. So the library is tried
before it is used at all, and each expression on its own examples; one that is missed is left to RE2.
"""

import platform
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, cast

import hyperscan as library

from services.gate.alphabet import write_expression, write_text
from services.gate.compiled import recall_or_compile
from services.gate.loosening import loosen
from services.gate.patterns import Pattern, compile_pattern

hyperscan = cast(Any, library)  # which may be missing where types are checked

# ALLOWEMPTY is for the sentinel; a match is told once and without its start, for RE2 looks again anyway.
_COMMON_FLAGS = hyperscan.HS_FLAG_SINGLEMATCH | hyperscan.HS_FLAG_ALLOWEMPTY
_FLAGS = {"i": hyperscan.HS_FLAG_CASELESS, "m": hyperscan.HS_FLAG_MULTILINE, "s": hyperscan.HS_FLAG_DOTALL, "u": 0}

_FAULTY_RELEASES = ("5.4.11", "5.4.12")
# What faulty releases miss, from their issues and from our patterns: expressions, and a text with the first of them.
_PROBES = (
    ((r"<%[\s\S]+%>", r"<[^<>]+:(?:include|output)", r"[\$#]{[\s\S]+\([\s\S]*\)[\s\S]*}"), "<%out.print();int a%>"),
    ((r"(?:\{\{|\{%|\$\{|#\{|<%=?|\[\[)[^{}]{0,120}(?:T\(java\.|child_process)",), "${T(java.lang)}"),
    ((r"(?s)curl.*\|\s*python",), "curl http://vader:8080/ 2>&1 | python"),
    ((r"(?i)^.*TAPIOCA.*EX.*$", r"(?i)^.*BOBA.*GUY.*$", r"(?i)^GUCCI FRANCE.*$"), "TAPIOCA HOUSE TUXTLA GUTIER MEX"),
)
# Vectors are up to 64 bytes long; a match may begin at any place in one.
_SHIFTS = range(67)


class HyperscanEngine:
    """An `Engine`; any thread may ask at any time.

    `shared` are expressions that most sets hold: they are compiled once, whichever of them are in this set. So one that
    lacks some of them, or has another beside them, costs next to nothing.
    """

    seconds_per_kib = 0.001

    def __init__(self, patterns: Sequence[Pattern], shared: Sequence[Pattern] = ()) -> None:
        """Takes seconds for many patterns, unless this machine has compiled them before."""
        numbers = {pattern.key: number for number, pattern in enumerate(patterns)}
        base = tuple(shared) if any(pattern.key in numbers for pattern in shared) else ()
        shared_keys = {pattern.key for pattern in base}
        others = tuple(pattern for pattern in patterns if pattern.key not in shared_keys)
        # Even a set of no expressions has a part: its sentinel says that the text was read.
        self._parts = [_Part(part, numbers) for part in (base, others) if part] or [_Part((), numbers)]

    def find_candidates(self, text: bytes) -> Sequence[int] | None:
        found: list[int] = []
        for part in self._parts:
            numbers = part.find_candidates(text)
            if numbers is None:
                return None
            found += numbers
        return found


class _Part:
    """A database, with the numbers that its expressions have in the set; some have none."""

    def __init__(self, patterns: tuple[Pattern, ...], numbers: Mapping[str, int]) -> None:
        with _OPENING:  # two threads that want the same database are not to compile it twice
            self._database = _open_database(patterns)
        self._numbers = [numbers.get(pattern.key) for pattern in patterns]

    def find_candidates(self, text: bytes) -> Sequence[int] | None:
        found = self._database.find_candidates(text)
        return found and [number for own in found if (number := self._numbers[own]) is not None]


_OPENING = threading.Lock()
DATABASES_OPEN_MAX = 8


@lru_cache(DATABASES_OPEN_MAX)
def _open_database(patterns: tuple[Pattern, ...]) -> "_Database":
    return _Database(patterns)


class _Database:
    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._sentinel = len(patterns)
        # RE2 takes a few forms that Hyperscan or bytes do not; such an expression is always a candidate.
        self._database, unread = _build(patterns)
        # Every scan needs a scratch space of its own; those of finished scans are used again.
        self._scratches: deque[Any] = deque()
        self._unread: frozenset[int] = frozenset()
        self._unread = frozenset(unread) | frozenset(self._find_missed(patterns))

    def find_candidates(self, text: bytes) -> Sequence[int] | None:
        written = write_text(text)
        if written is None:
            return range(self._sentinel)
        found: list[int] = []
        scratch = self._take_scratch()
        try:
            self._database.scan(written, _note, context=found, scratch=scratch)
        except hyperscan.error:
            return None
        self._scratches.append(scratch)
        # The sentinel matches where a text ends, so without it the scan did not come there.
        if self._sentinel not in found:
            return None
        found.remove(self._sentinel)
        return list(self._unread.union(found)) if self._unread else found

    def _find_missed(self, patterns: Sequence[Pattern]) -> Iterator[int]:
        """Those that this database does not find in their own examples, wherever in a text they stand."""
        for number, pattern in enumerate(patterns):
            regex = compile_pattern(pattern)
            shifted = (f"{' ' * shift}{text}".encode() for text in pattern.must_match for shift in _SHIFTS)
            if any(number not in (self.find_candidates(text) or ()) and regex.search(text) for text in shifted):
                yield number

    def _take_scratch(self) -> Any:
        try:
            return self._scratches.pop()
        except IndexError:
            return hyperscan.Scratch(self._database)


@cache
def is_trustworthy() -> bool:
    """Whether this is no release with known faults, and finds what those miss."""
    release = str(_compile(_choose([])).info())
    return not any(faulty in release for faulty in _FAULTY_RELEASES) and all(
        _finds(expressions, text) for expressions, text in _PROBES
    )


def _finds(expressions: Sequence[str], text: str) -> bool:
    engine = HyperscanEngine([Pattern(f"probe.{number}", source) for number, source in enumerate(expressions)])
    return all(0 in (engine.find_candidates(f"{' ' * shift}{text}".encode()) or ()) for shift in _SHIFTS)


def _note(number: int, _start: int, _end: int, _flags: int, found: object) -> None:
    cast(list[int], found).append(number)


def _build(patterns: Sequence[Pattern]) -> tuple[Any, tuple[int, ...]]:
    """The database, and the numbers of those expressions that are not in it."""
    chosen = _choose(patterns)
    try:
        database = _recall_or_compile(chosen)
    except hyperscan.error:
        chosen = [entry for entry in chosen if _is_readable(entry)]
        database = _recall_or_compile(chosen)
    read = {number for number, _, _ in chosen}
    return database, tuple(number for number in range(len(patterns)) if number not in read)


def _recall_or_compile(chosen: "_Chosen") -> Any:
    content = repr((hyperscan.__version__, platform.processor(), chosen)).encode()
    kept = recall_or_compile(content, lambda: hyperscan.dumpb(_compile(chosen)))
    try:
        return hyperscan.loadb(kept, hyperscan.HS_MODE_BLOCK)
    except hyperscan.error:
        return _compile(chosen)


def _is_readable(entry: "_Entry") -> bool:
    try:
        _compile([entry])
    except hyperscan.error:
        return False
    return True


_Entry = tuple[int, bytes, int]
_Chosen = list[_Entry]


def _choose(patterns: Sequence[Pattern]) -> _Chosen:
    """Number, expression and flags; a sentinel numbered after all patterns stands behind them."""
    written = [(number, _write(pattern), _flags_of(pattern)) for number, pattern in enumerate(patterns)]
    chosen = [(number, source, flags) for number, source, flags in written if source is not None]
    return [*chosen, (len(patterns), rb"\z", _COMMON_FLAGS)]


def _compile(chosen: _Chosen) -> Any:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=[source for _, source, _ in chosen],
        ids=[number for number, _, _ in chosen],
        flags=[flags for _, _, flags in chosen],
        elements=len(chosen),
    )
    return database


def _flags_of(pattern: Pattern) -> int:
    flags = _COMMON_FLAGS
    for flag in pattern.flags:
        flags |= _FLAGS[flag]
    return flags


def _write(pattern: Pattern) -> bytes | None:
    # Expressions are handed over as C strings, which end at a NUL.
    return write_expression(loosen(pattern.source.replace("\0", r"\x00")))
