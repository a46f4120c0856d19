"""What a scan means, and what a set is called (spec 3.3)."""

from collections.abc import Sequence

from lorebus.contracts.gate import VerdictKind

from services.gate.patterns import Pattern, pattern_set_version
from services.gate.scan import SCAN_VERSION, Scan


def verdict_of(scan: Scan) -> VerdictKind:
    """A match counts even when the scan was not whole; no match counts only when it was. Watching changes nothing."""
    if scan.matched:
        return "matched"
    return "clean" if scan.complete else "incomplete"


def name_set(patterns: Sequence[Pattern]) -> str:
    """Another name whenever a verdict may be another: for other patterns, and for another way of reading texts."""
    return f"{SCAN_VERSION}-{pattern_set_version(patterns)}"
