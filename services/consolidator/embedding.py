"""The vectors of merged texts. A channel pays for its own; past its budget a cluster is left as it is."""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from libs.common.channel_budget import ChannelBudget, Payer
from libs.common.embedding.models import ServingModel
from libs.common.embedding.serving import Models, TextVectors
from libs.common.errors import ModelReplaced, SpendingRefused
from services.consolidator.rules import Left, Merge, Scope, build_rows
from services.consolidator.store import Ready

_log = structlog.get_logger("consolidator")


@dataclass(frozen=True, slots=True)
class Embedded:
    ready: Sequence[Ready]
    left: Sequence[Left]


class Embedding:
    def __init__(self, models: Models, budget: ChannelBudget) -> None:
        self._models = models
        self._budget = budget

    @property
    def serving(self) -> ServingModel:
        return self._models.serving

    async def embed_all(self, scope: Scope, merges: Sequence[Merge], model_id: int) -> Embedded:
        """Raises EmbedderUnavailable, and ModelReplaced where another model serves than the sources were read with."""
        ready: list[Ready] = []
        left: list[Left] = []
        for merge in merges:
            try:
                ready.append(await self._embed(scope, merge, model_id))
            except SpendingRefused as error:
                _log.warning("consolidator.spending_refused", error=str(error))
                left.append(Left(merge.source_ids, "spending_refused"))
        return Embedded(ready, left)

    async def _embed(self, scope: Scope, merge: Merge, model_id: int) -> Ready:
        rows = build_rows(merge)
        vectors = await self._find_vectors(scope, [row.summary for row in rows])
        if any(found.model_id != model_id for found in vectors):
            raise ModelReplaced("another embedding model serves by now")
        return Ready(merge, rows, vectors)

    async def _find_vectors(self, scope: Scope, texts: Sequence[str]) -> list[TextVectors]:
        if scope.kind == "channel-memory":
            return await self._budget.embed(self._models, Payer(scope.tenant, scope.key, scope.owner), texts)
        return [await self._models.embed(text) for text in texts]
