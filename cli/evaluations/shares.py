"""Counts as shares, with how far they can be trusted."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Z_95 = 1.959964
"""Standard deviations that 95 % of a normal distribution lie within."""


@dataclass(frozen=True, slots=True)
class Share:
    hits: int
    total: int

    @property
    def value(self) -> float:
        """0 where there is nothing to count."""
        return self.hits / self.total if self.total else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval, which holds for small counts and for shares near 0 and 1 too."""
        if not self.total:
            return (0.0, 1.0)
        square = Z_95**2 / self.total
        middle = self.value + square / 2
        half = Z_95 * math.sqrt(self.value * (1 - self.value) / self.total + square / (4 * self.total))
        return (max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square)))

    def as_json(self) -> dict[str, object]:
        return {"hits": self.hits, "n": self.total, "share": self.value, "interval": self.interval}


def share_of(hits: Iterable[bool]) -> Share:
    counted = list(hits)
    return Share(sum(counted), len(counted))


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least so many percent do not exceed; 0 of nothing."""
    if not values:
        return 0.0
    rank = math.ceil(len(values) * percent / 100)
    return sorted(values)[max(rank, 1) - 1]
