"""What a pattern set has to pass before it screens anything: its own examples, and texts that are always the same.

The examples show that each pattern does what its author meant. The smoke texts show that the set as a whole lets
ordinary engineering through and still finds plain attacks: a set that lost most of its patterns, or an engine that
finds nothing, fails here. Each attack speaks for several families, so that any one pattern may be disabled.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources

from services.gate.patterns import Pattern, PatternRejected, check_examples, compile_pattern
from services.gate.scan import Scan, Scanner

WATCHED_SHARE_MAX = 0.05
"""A watch pattern refuses nothing, but what it finds waits for a person: it may not find ordinary texts often."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a set may not go live. The reason may quote an example: it is for the author, never for a log."""

    reason: str
    label: str = ""
    """The pattern at fault; empty where it is the set as a whole."""


@dataclass(frozen=True, slots=True)
class Smoke:
    """Texts of `smoke/`, parted by empty lines."""

    lessons: tuple[str, ...]
    attacks: tuple[str, ...]


def load_smoke() -> Smoke:
    folder = resources.files(__package__ or "services.gate").joinpath("smoke")
    lessons, attacks = (folder.joinpath(name).read_text("utf-8") for name in ("lessons.txt", "attacks.txt"))
    return Smoke(split_texts(lessons), split_texts(attacks))


def split_texts(text: str) -> tuple[str, ...]:
    return tuple(part for part in (part.strip("\n") for part in text.split("\n\n")) if part)


def part_usable(patterns: Sequence[Pattern]) -> tuple[list[Pattern], list[Fault]]:
    """Those that compile, and why the others do not: a row that does not compile is skipped (spec 3.1)."""
    usable: list[Pattern] = []
    faults: list[Fault] = []
    for pattern in patterns:
        try:
            compile_pattern(pattern)
        except PatternRejected as rejected:
            faults.append(Fault(str(rejected), pattern.label))
        else:
            usable.append(pattern)
    return usable, faults


def find_faults(patterns: Sequence[Pattern]) -> list[Fault]:
    """Everything that keeps this set from going live. Compiles and scans: tens of milliseconds and more."""
    return try_patterns(patterns)[1]


def try_patterns(patterns: Sequence[Pattern]) -> tuple[Scanner | None, list[Fault]]:
    """The scanner that went through the trial, untimed, and the faults. None when there could be none."""
    faults = [Fault(reason, pattern.label) for pattern in patterns for reason in check_examples(pattern)]
    try:
        scanner = build_untimed_scanner(part_usable(patterns)[0])
    except PatternRejected as rejected:
        return None, [*faults, Fault(str(rejected))]
    return scanner, [*faults, *_hold_against_smoke(scanner, load_smoke())]


def build_untimed_scanner(patterns: Sequence[Pattern]) -> Scanner:
    """For who wants the verdict however long it takes: the first scans of a process are slow."""
    return Scanner(patterns, cpu_clock=lambda: 0.0)


def _hold_against_smoke(scanner: Scanner, smoke: Smoke) -> Iterator[Fault]:
    scans = [scanner.scan(text, now=0.0) for text in smoke.lessons]
    yield from _faults_on_lessons(scans)
    found = [scanner.scan(text, now=0.0) for text in smoke.attacks]
    for number, scan in enumerate(found, start=1):
        if not scan.matched:
            yield Fault(f"the set does not find smoke attack {number} any more")
    if not all(scan.complete for scan in (*scans, *found)):
        yield Fault("the set could not scan every smoke text whole")


def _faults_on_lessons(scans: Sequence[Scan]) -> Iterator[Fault]:
    matched = Counter(label for scan in scans for label in scan.matched)
    for label, count in matched.items():
        first = next(number for number, scan in enumerate(scans, start=1) if label in scan.matched)
        yield Fault(f"{label}: matches {count} of {len(scans)} ordinary texts, first smoke lesson {first}", label)
    watched = Counter(label for scan in scans for label in scan.watched)
    for label, count in watched.items():
        if count > WATCHED_SHARE_MAX * len(scans):
            yield Fault(f"{label}: watches {count} of {len(scans)} ordinary texts", label)
