"""Queries as the model sees them, remembered: agents ask again and again with the same failure.

Kept by tenant, since how soon an answer comes must not tell one tenant what another has asked; by model, since another
one sees otherwise; and by a hash, so that no text stays in memory.
"""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from libs.common.domain.calibration import Background
from libs.common.embedding.models import ServingModel

SIGHTS_MAX = 2_048
"""In each process: 2 MB of the default model's vectors, 25 MB of the longest."""

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Sight:
    """A query as the model sees it, or as nothing does."""

    vector: Vector
    background: Background
    is_blind: bool = False


class Sights:
    """The last ones that were asked for."""

    def __init__(self, sights_max: int = SIGHTS_MAX) -> None:
        self._sights_max = sights_max
        self._kept: OrderedDict[tuple[str, int, bytes], tuple[ServingModel, Sight]] = OrderedDict()

    def find(self, tenant: str, model: ServingModel, text: str) -> Sight | None:
        key = _key(tenant, model, text)
        by, sight = self._kept.get(key, (None, None))
        # Built anew, at another length perhaps, a model keeps its id.
        if by is not model:
            return None
        self._kept.move_to_end(key)
        return sight

    def keep(self, tenant: str, model: ServingModel, text: str, sight: Sight) -> None:
        key = _key(tenant, model, text)
        self._kept[key] = (model, sight)
        self._kept.move_to_end(key)
        if len(self._kept) > self._sights_max:
            self._kept.popitem(last=False)


def _key(tenant: str, model: ServingModel, text: str) -> tuple[str, int, bytes]:
    return tenant, model.id, hashlib.sha256(text.encode()).digest()
