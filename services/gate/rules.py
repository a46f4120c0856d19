"""What a scan means (spec 3.3)."""

from lorebus.contracts.gate import VerdictKind

from services.gate.scan import Scan


def verdict_of(scan: Scan) -> VerdictKind:
    """A match counts even when the scan was not whole; no match counts only when it was."""
    if scan.matched:
        return "matched"
    return "clean" if scan.complete else "incomplete"
