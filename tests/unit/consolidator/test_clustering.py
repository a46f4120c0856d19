"""Clusters in which everybody is near everybody."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.consolidator import clustering
from services.consolidator.clustering import SIZE_MAX, Vectors, find_clusters

SLACK = 1e-5
"""Two products of the same rows may differ in the last bits."""


def themes(sizes: list[int], noise: float, seed: int, dimensions: int = 32) -> Vectors:
    """Rows around as many directions as there are sizes, in mixed order, none of unit length."""
    chance = np.random.default_rng(seed)
    centres = np.repeat(chance.normal(size=(len(sizes), dimensions)), sizes, axis=0)
    rows = centres + noise * chance.normal(size=centres.shape)
    return chance.permutation(rows).astype(np.float32)


def at_degrees(*degrees: float) -> Vectors:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def cosines(vectors: Vectors) -> Vectors:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit @ unit.T


@settings(max_examples=150, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 45), min_size=1, max_size=8),
    noise=st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0]),
    similarity_min=st.sampled_from([0.5, 0.7, 0.85, 0.95]),
    size_min=st.integers(2, SIZE_MAX),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_pair_is_near_every_row_counts_once_and_the_cap_holds(
    sizes: list[int], noise: float, similarity_min: float, size_min: int, seed: int
) -> None:
    vectors = themes(sizes, noise, seed)
    near = cosines(vectors)
    clusters = find_clusters(vectors, similarity_min, size_min)
    members = [row for cluster in clusters for row in cluster.rows]
    assert len(members) == len(set(members))
    for cluster in clusters:
        assert size_min <= len(cluster.rows) <= SIZE_MAX
        lowest = near[np.ix_(cluster.rows, cluster.rows)].min()
        assert lowest >= similarity_min - SLACK
        assert cluster.similarity == pytest.approx(lowest, abs=SLACK)


@settings(max_examples=50, deadline=None)
@given(sizes=st.lists(st.integers(3, 12), min_size=1, max_size=6), seed=st.integers(0, 2**32 - 1))
def test_what_is_plainly_together_is_found_whole(sizes: list[int], seed: int) -> None:
    clusters = find_clusters(themes(sizes, 0.01, seed, dimensions=256), 0.85, 3)
    assert sorted(len(cluster.rows) for cluster in clusters) == sorted(sizes)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = themes([7, 5, 30, 1, 2, 9], 0.3, seed=3)
    whole = find_clusters(vectors, 0.7, 3)
    monkeypatch.setattr(clustering, "BLOCK_ROWS", 5)
    assert [cluster.rows for cluster in find_clusters(vectors, 0.7, 3)] == [cluster.rows for cluster in whole] != []


def test_a_chain_is_not_a_cluster() -> None:
    chain = at_degrees(20, 45, 70, 95, 120, 145)
    # Neighbours are alike, ends are not: single link would take all six.
    assert [len(cluster.rows) for cluster in find_clusters(chain, 0.9, 2)] == [2, 2, 2]


def test_a_row_that_was_passed_over_can_still_join_a_later_cluster() -> None:
    """Row 0 is nearest to 1, which nobody else is near to; with 2 and 3 it makes three."""
    [cluster] = find_clusters(at_degrees(40, 20, 64, 63), float(np.cos(np.radians(25))), 3)
    assert cluster.rows == (0, 2, 3)


def test_null_and_zero_vectors_take_no_part() -> None:
    rows = np.ones((6, 4), dtype=np.float32)
    rows[3] = 0
    rows[4] = np.nan
    [cluster] = find_clusters(rows, 0.85, 3)
    assert cluster.rows == (0, 1, 2, 5)


def test_texts_without_any_known_word_have_nothing_in_common() -> None:
    first_axis = np.zeros((5, 4), dtype=np.float32)
    first_axis[:, 0] = 1
    assert find_clusters(first_axis, 0.85, 3) == []


def test_of_a_large_theme_several_clusters_are_made() -> None:
    clusters = find_clusters(np.ones((2 * SIZE_MAX + 2, 4), dtype=np.float32), 0.85, 3)
    assert [len(cluster.rows) for cluster in clusters] == [SIZE_MAX, SIZE_MAX]


def test_nothing_gives_nothing() -> None:
    assert find_clusters(np.empty((0, 8), dtype=np.float32), 0.85, 3) == []
