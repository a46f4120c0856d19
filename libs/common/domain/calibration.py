"""One threshold for every embedding model: similarities are read against a fixed background of 256 texts.

A cosine of .7 means much under one model and nothing under another, and long queries lie nearer to everything than
short ones. How far a cosine stands out from the query's cosines to texts that have nothing to do with it carries over.
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

    def z(self, cosine: float) -> float:
        return (cosine - self.mean) / self.deviation


def measure_background(query: Vectors, background: Vectors) -> Background:
    """Unit vectors in: `query` of shape (d,), `background` of shape (n, d)."""
    cosines = background @ query
    mean = float(cosines.sum()) / len(cosines)
    # Not numpy's own mean and std: on so few numbers their overhead is most of their time.
    variance = float(cosines @ cosines) / len(cosines) - mean * mean
    return Background(mean, sqrt(max(variance, 0.0)))


def z_of_setting(setting: float) -> float:
    """The z that a similarity setting stands for: linear through (0, 0) and (0.7, 3).

    So the seed's settings keep their numbers and their order: 0.6 is lenient (2.6), 0.85 strict (3.6).
    """
    return setting * Z_DEFAULT / SETTING_DEFAULT
