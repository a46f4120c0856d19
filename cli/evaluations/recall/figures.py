"""Shares of the evidence over many questions, with how far they can be trusted."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 1_000
SEED = 20_261_130


@dataclass(frozen=True, slots=True)
class Mean:
    """`low` and `high` hold the mean in 95 % of as many questions drawn from these, with return."""

    value: float
    low: float
    high: float
    n: int

    def as_json(self) -> dict[str, object]:
        return {"value": self.value, "interval": [self.low, self.high], "n": self.n}


def mean_of(values: Sequence[float]) -> Mean:
    """0 of nothing."""
    if not values:
        return Mean(0.0, 0.0, 0.0, 0)
    rows = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(SEED).integers(0, len(rows), (RESAMPLES, len(rows)))
    low, high = np.percentile(rows[drawn].mean(axis=1), [2.5, 97.5])
    return Mean(float(rows.mean()), float(low), float(high), len(rows))


def difference(ours: Sequence[float], theirs: Sequence[float]) -> Mean:
    """Question by question, so that hard questions weigh on both."""
    return mean_of([one - other for one, other in zip(ours, theirs, strict=True)])
