"""How a request becomes a question to the store: prepared, embedded where its mode wants a vector, its bars set.

An embedder that is down, or takes more than half of the deadline, costs the vector and not the answer: the words and
the failure's fingerprint are looked up all the same, and the reply says `degraded: embedder`.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import structlog
from lorebus.contracts.recall import Mode, RecallRequest

from libs.common.domain.calibration import Background, measure_background
from libs.common.domain.lexical import Frequencies
from libs.common.domain.query import PreparedQuery, prepare_query
from libs.common.embedding.models import ServingModel
from libs.common.embedding.serving import Models
from libs.common.errors import EmbedderUnavailable
from services.recall.limits import Limits
from services.recall.rules import Bars, ScopeName, bare_bars, bars_of, blind_bars
from services.recall.sights import Sight, Sights, Vector
from services.recall.store import Question

_log = structlog.get_logger("recall")

EMBED_SHARE = 0.5
"""Of the deadline."""
_NO_BACKGROUND = Background(mean=0.0, sd=1.0)


@dataclass(frozen=True)
class Lookups:
    """What a question is read against: the models, and how common words are anywhere."""

    models: Models
    background_words: Frequencies


class Asking:
    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups
        self._sights = Sights()

    async def prepare(self, request: RecallRequest, scope: ScopeName, limits: Limits) -> Question:
        """Raises EmbedderUnavailable in mode `vector` alone: other modes go on without the vector."""
        model, words = self._lookups.models.serving, self._lookups.background_words
        query = prepare_query(request.query, words, scope.key, request.agent)
        timeout_seconds = EMBED_SHARE * request.deadline_ms / 1000
        sight = await self._look(model, query, scope.tenant, limits.mode, timeout_seconds)
        terms: Sequence[str] = () if limits.mode == "vector" else query.terms
        return Question(
            scope=scope,
            model_id=model.id,
            vector=sight.vector,
            terms=terms,
            terms_known=[words.documents.get(term, 0) for term in terms],
            fingerprints=() if limits.mode == "vector" else query.fingerprints,
            background_size=words.size,
            created_after=limits.created_after,
            background=sight.background,
            bars=_choose_bars(limits, sight),
            limit=limits.items_max,
            tier_min=limits.tier_min,
            is_blind=sight.is_blind,
            tags=request.tags,
        )

    async def _look(
        self, model: ServingModel, query: PreparedQuery, tenant: str, mode: Mode, timeout_seconds: float
    ) -> Sight:
        if mode == "lexical":
            return _blind(model)
        if known := self._sights.find(tenant, model, query.embed_text):
            return known
        try:
            vector = await _embed(model, query.embed_text, timeout_seconds)
        except EmbedderUnavailable as error:
            _log.warning("recall.embedder_unavailable", reason=str(error))
            if mode == "vector":
                raise
            return _blind(model)
        sight = Sight(vector, measure_background(vector, model.background))
        self._sights.keep(tenant, model, query.embed_text, sight)
        return sight


def _blind(model: ServingModel) -> Sight:
    return Sight(np.zeros_like(model.background[0]), _NO_BACKGROUND, is_blind=True)


async def _embed(model: ServingModel, text: str, timeout_seconds: float) -> Vector:
    try:
        async with asyncio.timeout(timeout_seconds):
            [vector] = await model.embedder.embed([text])
    except TimeoutError:
        raise EmbedderUnavailable(f"no vector within {timeout_seconds:g} s") from None
    return vector


def _choose_bars(limits: Limits, sight: Sight) -> Bars:
    if sight.is_blind:
        return blind_bars(limits.similarity_min)
    if limits.calibration == "cosine":
        return bare_bars(limits.similarity_min)
    return bars_of(limits.similarity_min, sight.background)
