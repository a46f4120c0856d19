"""Which memories say the same: all pairs of a scope, as clusters in which everybody is near everybody.

Complete link, since near pairs chain: by single link 6,874 of 20,000 items became one cluster. Rows are taken newest
first. Each free row gathers the free rows near it, the nearest first, as long as each is near to all that were gathered
before; too few of them stay free for others. Similarities are computed once, in blocks of the upper triangle, so that
20,000 rows never need more than 82 MB at a time. numpy lets other threads run meanwhile.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
Rows = npt.NDArray[np.intp]

BLOCK_ROWS = 1_024
SIZE_MAX = 20
"""Of a cluster: the largest least size that can be set, and at 2,200 characters an item what a model still reads whole.
The largest complete-link cluster of labelled failure reports had 15."""
NEAR_MAX = 128
"""So many of a row's neighbours are looked at, the nearest first."""

_LENGTH_MIN = 1e-6
_FIRST_AXIS = 0.999
"""Embedders give a text without any known word the first axis: such texts have nothing in common but that."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Rows that belong together, the newest first. `similarity`: the cosine of the two farthest."""

    rows: tuple[int, ...]
    similarity: float


def find_clusters(vectors: Vectors, similarity_min: float, size_min: int) -> list[Cluster]:
    """Every row in at most one cluster, every pair of a cluster at least `similarity_min` alike.

    `vectors` has a row an item, newest first; rows without direction take no part.
    """
    directed, unit = _with_direction(vectors)
    clustering = _Clustering(unit, similarity_min, size_min)
    for start in range(0, len(unit), BLOCK_ROWS):
        clustering.take_block(start)
    return [_name_rows(cluster, directed) for cluster in clustering.clusters]


def _with_direction(vectors: Vectors) -> tuple[Rows, Vectors]:
    lengths = np.linalg.norm(vectors, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = vectors / lengths[:, None]
    is_directed = np.isfinite(lengths) & (lengths > _LENGTH_MIN)
    is_directed &= ~(unit[:, 0] > _FIRST_AXIS) if vectors.shape[1] > 1 else True
    directed = np.flatnonzero(is_directed)
    return directed, unit[directed]


def _name_rows(cluster: Cluster, directed: Rows) -> Cluster:
    return Cluster(tuple(sorted(int(directed[row]) for row in cluster.rows)), cluster.similarity)


class _Clustering:
    """The state of one run over rows of length 1."""

    def __init__(self, unit: Vectors, similarity_min: float, size_min: int) -> None:
        self.clusters: list[Cluster] = []
        self._unit = unit
        self._similarity_min = similarity_min
        self._size_min = size_min
        self._is_free = np.ones(len(unit), dtype=np.bool_)
        self._passed_over: defaultdict[int, list[int]] = defaultdict(list)
        """Earlier rows that found no cluster, by each row near to them: the blocks look ahead only."""

    def take_block(self, start: int) -> None:
        unit = self._unit
        similarities = unit[start : start + BLOCK_ROWS] @ unit[start:].T
        size = len(similarities)
        similarities[:, :size][np.tril_indices(size)] = -1.0
        is_near = similarities >= self._similarity_min
        for row in np.flatnonzero(is_near.any(axis=1)):
            if self._is_free[start + row]:
                self._gather(start + int(row), start + np.flatnonzero(is_near[row]))

    def _gather(self, seed: int, later: Rows) -> None:
        near = self._nearest(seed, np.concatenate((later, self._passed_over.pop(seed, []))).astype(np.intp))
        members = self._link(seed, near)
        if len(members) >= self._size_min:
            self._is_free[members] = False
            self.clusters.append(Cluster(tuple(members), self._farthest(members)))
            return
        for row in near:
            self._passed_over[int(row)].append(seed)

    def _nearest(self, seed: int, rows: Rows) -> Rows:
        free = rows[self._is_free[rows]]
        similarities = self._unit[free] @ self._unit[seed]
        return free[np.argsort(-similarities, kind="stable")[:NEAR_MAX]]

    def _link(self, seed: int, near: Rows) -> list[int]:
        """The seed and those near it that are near each other as well."""
        if len(near) + 1 < self._size_min:
            return [seed]
        fits = self._unit[near] @ self._unit[near].T >= self._similarity_min
        members, is_allowed = [seed], np.ones(len(near), dtype=np.bool_)
        for place, row in enumerate(near):
            if is_allowed[place] and len(members) < SIZE_MAX:
                members.append(int(row))
                is_allowed &= fits[place]
        return members

    def _farthest(self, members: Sequence[int]) -> float:
        rows = self._unit[list(members)]
        return float((rows @ rows.T).min())
