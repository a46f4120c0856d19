"""One threshold for every embedding model: similarities are read against a fixed background of texts.

A cosine of .7 means much under one model and nothing under another, and long queries lie nearer to everything than
short ones. How far a cosine stands out from the query's cosines to texts that have nothing to do with it carries over.
The texts are of two kinds, work on software and everyday life: whatever is asked about people lies nearer to all that
is said about people, so that it has to stand out from those.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]

Calibration = Literal["background", "cosine"]
"""How a similarity setting is read: against the background, or as the bare cosine."""

SETTING_DEFAULT = 0.7
Z_DEFAULT = 3.0
WORK_TEXTS = 256
"""The first so many texts of the background are about work, the others about everyday life."""
SD_MIN = 1e-3
"""Keeps z finite for an empty query, whose cosines are all equal."""


@dataclass(frozen=True, slots=True)
class Background:
    """Mean and standard deviation of a query's cosines to the background texts."""

    mean: float
    sd: float

    @property
    def deviation(self) -> float:
        """The standard deviation, never so small that z grows without bound."""
        return max(self.sd, SD_MIN)

    @property
    def cosine_default(self) -> float:
        """What passes at the default setting."""
        return self.mean + Z_DEFAULT * self.deviation

    def z(self, cosine: float) -> float:
        return (cosine - self.mean) / self.deviation


def measure_background(query: Vectors, background: Vectors) -> Background:
    """Of the kind of texts that asks most of a cosine. Unit vectors in: `query` of shape (d,), `background` (n, d)."""
    cosines = background @ query
    kinds = [kind for kind in (cosines[:WORK_TEXTS], cosines[WORK_TEXTS:]) if len(kind)]
    return max(map(_describe, kinds), key=lambda kind: kind.cosine_default)


def _describe(cosines: Vectors) -> Background:
    mean = float(cosines.sum()) / len(cosines)
    # Not numpy's own mean and std: on so few numbers their overhead is most of their time.
    variance = float(cosines @ cosines) / len(cosines) - mean * mean
    return Background(mean, sqrt(max(variance, 0.0)))


def z_of_setting(setting: float) -> float:
    """The z that a similarity setting stands for: linear through (0, 0) and (0.7, 3).

    So the seed's settings keep their numbers and their order: 0.6 is lenient (2.6), 0.85 strict (3.6).
    """
    return setting * Z_DEFAULT / SETTING_DEFAULT


def cosine_of_likeness(setting: float, background: Vectors) -> float:
    """The cosine that a likeness stands for: 0 is that of two texts about work, 1 that of a text to itself.

    Not the z that recall asks for: that one tells what is relevant from what is not, and would join a tenth of all
    pairs of a repository. Two models put the same pairs at about the same place between their background and 1.
    """
    work = background[:WORK_TEXTS]
    count, total = len(work), work.sum(axis=0)
    mean = (float(total @ total) - count) / (count * (count - 1))
    return mean + setting * (1 - mean)
