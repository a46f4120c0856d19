"""What an embedder is, and what all of them do to their vectors."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]


class Embedder(Protocol):
    """A model that makes vectors. Calls may take long; they never block the event loop."""

    @property
    def name(self) -> str:
        """`<provider>/<model>`: rows of another name are never compared with these."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text, shape (texts, dimensions). Raises EmbedderUnavailable."""
        ...


def normalise(vectors: npt.ArrayLike | Sequence[npt.ArrayLike]) -> Vectors:
    """Rows of length 1. A row without direction (no known word) becomes the first axis, far from all texts."""
    rows = np.array(vectors, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    empty = ~np.isfinite(lengths[:, 0]) | (lengths[:, 0] < 1e-9)
    rows[empty] = np.eye(1, rows.shape[1], dtype=np.float32)
    lengths[empty] = 1.0
    return rows / lengths
