"""The consolidator's story: memories of one place that say the same become one, which stands for them."""

from uuid import UUID, uuid5

import structlog
from lorebus.contracts.consolidation import RequestConsolidation
from lorebus.contracts.facts.consolidator import ConsolidationDispatched
from lorebus.contracts.subjects import CONSOLIDATION_REQUESTED

from libs.common.administered_settings import AdministeredSettings
from libs.common.bus.relay import Relay
from libs.common.inbox import Claim
from services.consolidator.embedding import Embedding
from services.consolidator.merging import Merged, Merging
from services.consolidator.planning import Bars, Plan, Planning
from services.consolidator.rules import Job, Scope, ScopeKind, choose_enabled
from services.consolidator.store import ConsolidatorStore, Measure, Result

_JOBS = UUID("a7f5d0c4-2d0a-5c8e-9a39-6b0b5c1f7d52")

_log = structlog.get_logger("consolidator")


class ConsolidatorService:
    """consolidation.requested → active memories → clusters → merged texts → gate.screen → embed
    → one transaction → lessons_consolidated
    """

    def __init__(
        self,
        store: ConsolidatorStore,
        planning: Planning,
        merging: Merging,
        embedding: Embedding,
        *,
        settings: AdministeredSettings,
        relay: Relay,
    ) -> None:
        self._store = store
        self._planning = planning
        self._merging = merging
        self._embedding = embedding
        self._settings = settings
        self._relay = relay

    async def consolidate(self, request: RequestConsolidation, claim: Claim) -> None:
        if request.repository is None and request.channel is None:
            await self._dispatch(request, claim)
        else:
            await self._merge(request, claim)
        self._relay.nudge()

    async def _dispatch(self, request: RequestConsolidation, claim: Claim) -> None:
        """One request becomes one for each repository, so that they are shared out among all copies."""
        tenant = claim.receipt.tenant
        repositories = await self._store.find_repositories(tenant)
        chosen = choose_enabled(repositories, await self._settings.get_stored(tenant))
        jobs = [
            request.model_copy(
                update={"repository": scope.key, "event_id": str(uuid5(_JOBS, f"{request.event_id}/{scope.id}"))}
            )
            for scope in chosen
        ]
        fact = ConsolidationDispatched(tenant=tenant, event_id=request.event_id, jobs=[job.event_id for job in jobs])
        await self._store.dispatch(claim, jobs, fact)
        _log.info("consolidator.dispatched", event_id=request.event_id, jobs=len(jobs))

    async def _merge(self, request: RequestConsolidation, claim: Claim) -> None:
        # No connection is held across what follows: the model may take minutes.
        job = await self._open_job(request, claim)
        model = self._embedding.serving
        bars = Bars(request.similarity_min, request.cluster_size_min)
        plan = await self._planning.find_plan(job.scope, Measure(model.id, model.background), bars)
        merged = await self._merging.merge(job, plan.clusters)
        tally = await self._store.commit(claim, job, await self._prepare(job, plan, merged, model.id))
        _log.info(
            "consolidator.consolidated",
            event_id=job.event_id,
            clusters_found=tally.found,
            sources=tally.sources,
            created=len(tally.created),
            left=tally.left,
        )

    async def _open_job(self, request: RequestConsolidation, claim: Claim) -> Job:
        tenant = claim.receipt.tenant
        kind: ScopeKind = "swe-lessons" if request.repository is not None else "channel-memory"
        key = request.repository or request.channel or ""
        # A place that nobody has written to yet has nothing to merge.
        scope = await self._store.find_scope(tenant, kind, key) or Scope(0, tenant, kind, key)
        return Job(scope, request.event_id, f"{CONSOLIDATION_REQUESTED}:{request.event_id}")

    async def _prepare(self, job: Job, plan: Plan, merged: Merged, model_id: int) -> Result:
        """Embeds what the gate has cleared. Raises EmbedderUnavailable, also where another model serves by now."""
        embedded = await self._embedding.embed_all(job.scope, merged.merges, model_id)
        return Result(
            found=plan.found,
            ready=embedded.ready,
            left=[*plan.left, *merged.left, *embedded.left],
            pattern_set=merged.pattern_set,
            model_id=model_id,
            idle_reason="too_few" if plan.candidates < plan.size_min else "nothing_alike",
        )
