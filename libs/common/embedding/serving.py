"""The models that count while services run: which one serves, which are being built, which may come back.

The first start takes the model that `LOREBUS_EMBEDDER` names. Once a second one was ever asked for, the table
`embedding_models` says which serves, and every service looks at it each second: a cut-over needs no restart. A service
that cannot open the new model goes on with the one that it has, whose vectors are kept for a while.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa
import structlog
from lorebus.errors import LorebusError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.database import outages_as_store_unavailable
from libs.common.embedding.choose import create_embedder, name_of
from libs.common.embedding.models import ServingModel, open_model, open_stored
from libs.common.errors import EmbedderUnavailable, ModelReplaced, SetupIncomplete, StoreUnavailable
from libs.common.schema import embedding_models
from libs.common.settings import CommonSettings

_log = structlog.get_logger("embedding")

LOOK_SECONDS = 1.0
FURTHER_SECONDS_MAX = 5.0
"""A write waits so long at most for models that do not serve."""
REST_SECONDS = 30.0
"""How long a model that does not serve is left alone after it failed."""

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True)
class TextVectors:
    """A text as the serving model sees it, and as others do that answered."""

    model_id: int
    embedding: Vector
    further: Mapping[int, Vector] = field(default_factory=dict[int, Vector])
    """By model id."""


class Models:
    """`serving` at any moment is one whole model. `is_writing`: retired ones that may come back count as well."""

    def __init__(self, engine: AsyncEngine, serving: ServingModel, *, is_writing: bool = False) -> None:
        self._engine = engine
        self._is_writing = is_writing
        self._resting: dict[int, float] = {}
        self.serving = serving
        self.further: Sequence[ServingModel] = ()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.look()
            except StoreUnavailable as error:
                _log.info("embedding.look_failed", reason=str(error))

    async def look(self) -> None:
        """Takes what the table says now. Raises StoreUnavailable."""
        rows = await find_models(self._engine)
        kept = [row for row in rows if row.state != "retired" or (self._is_writing and row.completed_at)]
        opened = {model.id: model for model in (self.serving, *self.further)}
        for row in kept:
            if row.id not in opened and (model := await self._try_open(row)):
                opened[row.id] = model
        self._choose([opened[row.id] for row in kept if row.id in opened], rows)

    def _choose(self, models: Sequence[ServingModel], rows: Sequence[sa.Row[Any]]) -> None:
        serving_id = next((row.id for row in rows if row.state == "serving"), None)
        for model in models:
            if model.id == serving_id != self.serving.id:
                _log.info("embedding.model_changed", model=model.embedder.name)
                self.serving = model
        self.further = [model for model in models if model.id != self.serving.id]

    async def _try_open(self, row: sa.Row[Any]) -> ServingModel | None:
        if self._is_resting(row.id):
            return None
        try:
            return await open_stored(self._engine, row.id)
        except LorebusError as error:
            self._rest(row.id)
            _log.warning("embedding.model_not_opened", model=row.name, state=row.state, reason=str(error))
            return None

    async def embed(self, text: str) -> TextVectors:
        """By the serving model, and by further ones as far as they answer in time. Raises EmbedderUnavailable."""
        serving, further = self.serving, self.further
        own, *others = await asyncio.gather(
            serving.embedder.embed([text]), *(self._try_embed(model, text) for model in further)
        )
        assert own is not None
        found = {model.id: rows[0] for model, rows in zip(further, others, strict=True) if rows is not None}
        return TextVectors(serving.id, own[0], found)

    async def _try_embed(self, model: ServingModel, text: str) -> npt.NDArray[np.float32] | None:
        """A write succeeds without it: whoever walks the model's missing rows finds this one."""
        if self._is_resting(model.id):
            return None
        try:
            async with asyncio.timeout(FURTHER_SECONDS_MAX):
                return await model.embedder.embed([text])
        except (EmbedderUnavailable, TimeoutError) as error:
            self._rest(model.id)
            _log.info("embedding.further_model_failed", model=model.embedder.name, error=type(error).__name__)
            return None

    def _is_resting(self, model_id: int) -> bool:
        return time.monotonic() < self._resting.get(model_id, 0.0)

    def _rest(self, model_id: int) -> None:
        self._resting[model_id] = time.monotonic() + REST_SECONDS


async def open_models(engine: AsyncEngine, settings: CommonSettings, *, is_writing: bool = False) -> Models:
    """Raises EmbeddingModelMismatch, SetupIncomplete, EmbedderUnavailable."""
    rows = await find_models(engine)
    serving = next((row for row in rows if row.state == "serving"), None)
    if len(rows) > 1 and serving is None:
        raise SetupIncomplete("No embedding model serves. Run `lorebus migrate`.")
    if serving is not None and len(rows) > 1:
        if serving.name != name_of(settings.embedder):
            _log.warning("embedding.setting_ignored", setting=settings.embedder, serving=serving.name)
        model = await open_stored(engine, serving.id)
    else:
        dimensions = settings.embedding_dimensions
        model = await open_model(engine, create_embedder(settings.embedder, dimensions), dimensions_asked=dimensions)
    models = Models(engine, model, is_writing=is_writing)
    await models.look()
    return models


async def find_models(engine: AsyncEngine) -> Sequence[sa.Row[Any]]:
    """Every model without its background, oldest first. Raises StoreUnavailable."""
    columns = [embedding_models.c[name] for name in ("id", "name", "state", "dimensions", "completed_at", "retired_at")]
    with outages_as_store_unavailable():
        async with engine.connect() as connection:
            return (await connection.execute(sa.select(*columns).order_by(embedding_models.c.id))).all()


async def hold_serving(connection: AsyncConnection, model_id: int) -> None:
    """No other model takes over until the transaction ends. Raises ModelReplaced where one has.

    Called before a memory is stored, so that none is without a vector of the model that serves from then on.
    """
    columns = embedding_models.c
    query = sa.select(columns.id).where(columns.id == model_id, columns.state == "serving")
    if (await connection.execute(query.with_for_update(read=True, key_share=True))).one_or_none() is None:
        raise ModelReplaced("another embedding model serves by now")
