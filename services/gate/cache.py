"""Verdicts that are known already: the same few lessons are recalled again and again.

A verdict holds for one exact text, one pattern set and one tenant; a cache shared by tenants would tell by its
timing whether a text is known elsewhere. Only scans that were whole are kept.
"""

import hashlib
from collections import OrderedDict

from services.gate.scan import Scan

VERDICTS_MAX = 100_000

Key = bytes


class VerdictCache:
    """The scans of one pattern set; a new set starts with an empty one. The longest unused go first."""

    def __init__(self, verdicts_max: int = VERDICTS_MAX) -> None:
        self._verdicts_max = verdicts_max
        self._scans: OrderedDict[Key, Scan] = OrderedDict()

    def find(self, key: Key) -> Scan | None:
        scan = self._scans.get(key)
        if scan is not None:
            self._scans.move_to_end(key)
        return scan

    def keep(self, key: Key, scan: Scan) -> None:
        if not scan.complete:
            return
        self._scans[key] = scan
        if len(self._scans) > self._verdicts_max:
            self._scans.popitem(last=False)


def cache_key(tenant: str, text: str) -> Key:
    digest = hashlib.sha256(tenant.encode())
    digest.update(b"\0")
    digest.update(text.encode())
    return digest.digest()
