"""The texts to stand for clusters: by the model, or by rules where none is set; and what the gate says of them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lorebus.contracts.gate import Origin
from lorebus.contracts.subjects import CONSOLIDATION_REQUESTED

from libs.common.domain.lexical import Frequencies
from libs.common.domain.memory import TIER_AGENT
from libs.common.gate_client import GateClient, Screening
from services.consolidator.extracting import extract
from services.consolidator.model.merger import ModelMerger
from services.consolidator.planning import PlannedCluster
from services.consolidator.rules import AGENT_KEYS, Job, Left, Merge

AT_ONCE_MAX = 3
"""Questions to the model (spec 6)."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What may be stored, and what stays as it is."""

    merges: Sequence[Merge] = ()
    left: Sequence[Left] = ()
    pattern_set: str = ""


class Merging:
    def __init__(self, gate: GateClient, merger: ModelMerger | None, words: Frequencies) -> None:
        self._gate = gate
        self._merger = merger
        self._words = words

    async def merge(self, job: Job, clusters: Sequence[PlannedCluster]) -> Merged:
        """Raises GateUnavailable, ModelUnavailable and StoreUnavailable."""
        worded = await self._word_all(job, clusters)
        merges = [one for one in worded if isinstance(one, Merge)]
        left = [one for one in worded if isinstance(one, Left)]
        if not merges:
            return Merged(left=left)
        screening = await self._screen(job, merges)
        judged = [judge(merge, find_own(screening, place)) for place, merge in enumerate(merges)]
        return Merged(
            merges=[one for one in judged if isinstance(one, Merge)],
            left=[*left, *(one for one in judged if isinstance(one, Left))],
            pattern_set=screening.pattern_set,
        )

    async def _word_all(self, job: Job, clusters: Sequence[PlannedCluster]) -> list[Merge | Left]:
        slots = asyncio.Semaphore(AT_ONCE_MAX)

        async def word(cluster: PlannedCluster) -> Merge | Left:
            async with slots:
                return await self._word(job, cluster)

        # What others were answered is paid for: it is kept before the first outage goes up.
        results = await asyncio.gather(*map(word, clusters), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if not isinstance(result, BaseException)]

    async def _word(self, job: Job, cluster: PlannedCluster) -> Merge | Left:
        if self._merger is not None:
            return await self._merger.merge(job, cluster.sources)
        return await asyncio.to_thread(extract, cluster.sources, self._words)

    async def _screen(self, job: Job, merges: Sequence[Merge]) -> Screening:
        texts = {f"{place}.{part}": text for place, merge in enumerate(merges) for part, text in merge.texts().items()}
        origin = Origin(kind=CONSOLIDATION_REQUESTED, run_id=None, writer=AGENT_KEYS[job.scope.kind])
        return await self._gate.screen("write", texts, tenant=job.scope.tenant, origin=origin)


def find_own(screening: Screening, place: int) -> Screening:
    """What was found in the texts of one merge."""
    prefix = f"{place}."
    return Screening(
        screening.pattern_set,
        {id_: labels for id_, labels in screening.matched.items() if id_.startswith(prefix)},
        frozenset(id_ for id_ in screening.incomplete if id_.startswith(prefix)),
        {id_: labels for id_, labels in screening.watched.items() if id_.startswith(prefix)},
    )


def judge(merge: Merge, screening: Screening) -> Merge | Left:
    """A match is an attack, a scan that was not whole an outage. Risky text of low tier would be held, and its sources
    with it: better to leave them."""
    if screening.matched:
        return Left(merge.source_ids, "matched", screening.patterns)
    if screening.incomplete:
        return Left(merge.source_ids, "incomplete")
    if screening.watched and merge.tier <= TIER_AGENT:
        return Left(merge.source_ids, "watched", screening.watched_patterns)
    return replace(merge, watched=screening.watched_patterns)
