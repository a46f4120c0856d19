"""What could be merged in one place: its active memories, and which of them say the same."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from libs.common.administered_settings import AdministeredSettings
from libs.common.domain.calibration import cosine_of_likeness
from libs.common.domain.setting_cascade import resolve_value
from libs.common.domain.setting_keys import (
    CONSOLIDATION_MIN_CLUSTER_SIZE,
    CONSOLIDATION_SIMILARITY_THRESHOLD,
    LESSON_MAX_AGE_DAYS,
)
from services.consolidator.clustering import Cluster, find_clusters
from services.consolidator.rules import CLUSTERS_MAX, Left, Scope, Source, split_by_trust
from services.consolidator.store import Candidate, ConsolidatorStore, Measure


@dataclass(frozen=True, slots=True)
class Bars:
    """How alike, and how many; None is the setting."""

    similarity_min: float | None = None
    size_min: int | None = None


@dataclass(frozen=True, slots=True)
class PlannedCluster:
    sources: Sequence[Source]
    similarity: float
    """The cosine of the two farthest."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`found` counts every cluster: those of `clusters`, and those that are left already."""

    candidates: int
    size_min: int
    cosine_min: float
    found: int = 0
    clusters: Sequence[PlannedCluster] = ()
    left: Sequence[Left] = ()


class Planning:
    def __init__(self, store: ConsolidatorStore, settings: AdministeredSettings) -> None:
        self._store = store
        self._settings = settings

    async def find_plan(self, scope: Scope, measure: Measure, bars: Bars) -> Plan:
        """Raises StoreUnavailable."""
        stored = await self._settings.get_stored(scope.tenant)
        alike, enough = bars.similarity_min, bars.size_min
        setting = resolve_value(CONSOLIDATION_SIMILARITY_THRESHOLD, stored, scope.owner) if alike is None else alike
        size_min = resolve_value(CONSOLIDATION_MIN_CLUSTER_SIZE, stored, scope.owner) if enough is None else enough
        # Only lessons age: other memories are not about code that moves on (spec 6).
        age_days_max = resolve_value(LESSON_MAX_AGE_DAYS, stored, scope.owner) if scope.kind == "swe-lessons" else 0
        candidates = await self._store.find_candidates(scope, measure.model_id, age_days_max)
        cosine_min = cosine_of_likeness(setting, measure.background)
        plan = Plan(len(candidates), size_min, cosine_min)
        if len(candidates) < size_min:
            return plan
        return await self._fill(plan, candidates)

    async def _fill(self, plan: Plan, candidates: Sequence[Candidate]) -> Plan:
        clusters = await asyncio.to_thread(cluster_candidates, candidates, plan.cosine_min, plan.size_min)
        chosen = clusters[:CLUSTERS_MAX]
        sources = await self._store.find_sources([candidates[row].id for one in chosen for row in one.rows])
        planned: list[PlannedCluster] = []
        left = [Left([candidates[row].id for row in one.rows], "too_many") for one in clusters[CLUSTERS_MAX:]]
        for one in chosen:
            ids = [candidates[row].id for row in one.rows]
            if sources.keys() >= set(ids):
                planned.append(PlannedCluster([sources[id_] for id_ in ids], one.similarity))
            else:
                left.append(Left(ids, "changed"))
        return Plan(plan.candidates, plan.size_min, plan.cosine_min, len(clusters), planned, left)


def cluster_candidates(candidates: Sequence[Candidate], cosine_min: float, size_min: int) -> list[Cluster]:
    """The largest first, of equals the tightest. Takes a second and more; numpy lets other threads run."""
    vectors = np.stack([candidate.embedding.to_numpy() for candidate in candidates]).astype(np.float32)
    clusters = [
        Cluster(tuple(part[row] for row in one.rows), one.similarity)
        for part in split_by_trust([candidate.origin_tier for candidate in candidates])
        for one in find_clusters(vectors[part], cosine_min, size_min)
    ]
    return sorted(clusters, key=lambda one: (-len(one.rows), -one.similarity, one.rows))
