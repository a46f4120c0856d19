"""Which drops are worth a report: each item once an hour, whatever asks for it (spec 3.3)."""

from collections import OrderedDict
from collections.abc import Iterable

REPORT_EVERY_SECONDS = 3_600.0
REMEMBERED_MAX = 1_000


class DropReports:
    """Remembers when an item was last reported; the oldest is forgotten first."""

    def __init__(self) -> None:
        self._reported: OrderedDict[str, float] = OrderedDict()

    def due(self, ids: Iterable[str], now: float) -> list[str]:
        """Those that were not reported within the hour; they count as reported from now on."""
        due = [id_ for id_ in ids if now - self._reported.get(id_, -REPORT_EVERY_SECONDS) >= REPORT_EVERY_SECONDS]
        for id_ in due:
            self._reported[id_] = now
            self._reported.move_to_end(id_)
        while len(self._reported) > REMEMBERED_MAX:
            self._reported.popitem(last=False)
        return due
