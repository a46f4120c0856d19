"""Vectors from hashed words and character 4-grams: the same everywhere, for ever, without a model. For tests."""

import hashlib
import re
from collections.abc import Iterator, Sequence

import numpy as np

from libs.common.embedding.port import Vectors, normalise

_DIMENSIONS = 384
_WORD = re.compile(r"[a-z0-9_]+")


class HashingEmbedder:
    """Near texts share words; nothing else is claimed."""

    name = f"hashing/blake2b-{_DIMENSIONS}"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), _DIMENSIONS), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for feature in _features(text.lower()):
                digest = int.from_bytes(hashlib.blake2b(feature.encode(), digest_size=8).digest(), "big")
                row[digest % _DIMENSIONS] += 1.0 if digest >> 63 else -1.0
        return normalise(rows)


def _features(text: str) -> Iterator[str]:
    for word in _WORD.findall(text):
        yield word
        padded = f"^{word}$"
        yield from (padded[start : start + 4] for start in range(max(1, len(padded) - 3)))


def create(_model: str, _dimensions: int | None) -> HashingEmbedder:
    return HashingEmbedder()
