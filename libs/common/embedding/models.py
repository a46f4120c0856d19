"""Models as rows: the first start writes the serving one, a re-embedding further ones; every opening checks them.

A row keeps the model's vectors of fixed background texts, against which every similarity is read
(`domain/calibration`): its calibration. There is no row without one, and a row that was calibrated by other texts than
this version has is calibrated anew when it is opened. A model that makes other vectors under the same name would
silently spoil recall.
"""

import asyncio
import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import sqlalchemy as sa
import structlog
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.embedding.choose import create_embedder, setting_of
from libs.common.embedding.port import Embedder, Vectors
from libs.common.errors import EmbeddingModelMismatch, SetupIncomplete
from libs.common.schema import embedding_models

_log = structlog.get_logger("embedding")

DIMENSIONS_MAX = 1_300
"""A longer vector does not fit into a B-tree tuple, which is what recall scans."""

_DRIFT_MAX = 1e-2


@dataclass(frozen=True)
class ServingModel:
    """The model that rows are embedded with and queries are asked with."""

    id: int
    embedder: Embedder
    background: Vectors
    """Shape (texts, dimensions)."""


def background_texts() -> list[str]:
    return files("libs.common.embedding").joinpath("background.txt").read_text("utf-8").splitlines()


async def open_model(engine: AsyncEngine, embedder: Embedder, *, dimensions_asked: int | None = None) -> ServingModel:
    """Raises EmbeddingModelMismatch when rows of another model are being served."""
    texts = background_texts()
    async with engine.begin() as connection:
        row = await _find_serving(connection)
    if row is None:
        vectors = await embedder.embed(texts)
        async with engine.begin() as connection:
            await insert_model(connection, embedder.name, vectors, dimensions_asked=dimensions_asked, is_serving=True)
            row = await _find_serving(connection)
    if row is None:
        raise SetupIncomplete("No embedding model serves. Run `lorebus migrate`.")
    model = await _check(engine, row, embedder, texts)
    if dimensions_asked != row.dimensions_asked:
        async with engine.begin() as connection:
            # A row from before the column: once another model serves, nobody else knows it.
            await connection.execute(
                sa.update(embedding_models).filter_by(id=row.id).values(dimensions_asked=dimensions_asked)
            )
    return model


async def _find_serving(connection: AsyncConnection) -> sa.Row[Any] | None:
    query = sa.select(embedding_models).where(embedding_models.c.state == "serving")
    return (await connection.execute(query)).one_or_none()


async def open_stored(engine: AsyncEngine, model_id: int) -> ServingModel:
    """A model by its row, whatever its state. Raises SetupIncomplete, EmbeddingModelMismatch, EmbedderUnavailable."""
    async with engine.connect() as connection:
        row = (await connection.execute(sa.select(embedding_models).filter_by(id=model_id))).one()
    # Loading a model, or LiteLLM, takes seconds.
    embedder = await asyncio.to_thread(create_embedder, setting_of(row.name), row.dimensions_asked)
    return await _check(engine, row, embedder, background_texts())


async def insert_model(
    connection: AsyncConnection, name: str, vectors: Vectors, *, dimensions_asked: int | None, is_serving: bool
) -> None:
    """A model with its vectors of the background texts: the first one, or one to build. Raises SetupIncomplete."""
    dimensions = vectors.shape[1]
    if dimensions > DIMENSIONS_MAX:
        raise SetupIncomplete(
            f"{name} makes vectors of {dimensions} dimensions; at most {DIMENSIONS_MAX} can be recalled"
            " exactly. Set LOREBUS_EMBEDDING_DIMENSIONS to a smaller length if the model offers one."
        )
    made: dict[str, Any] = {
        "dimensions": dimensions,
        "dimensions_asked": dimensions_asked,
        "state": "serving" if is_serving else "building",
        "completed_at": sa.func.now() if is_serving else None,
        "retired_at": None,
        **_calibration(vectors),
    }
    new = insert(embedding_models).values(name=name, **made)
    if is_serving:
        new = new.on_conflict_do_nothing()
    else:
        is_retired = embedding_models.c.state == "retired"
        new = new.on_conflict_do_update(index_elements=[embedding_models.c.name], set_=made, where=is_retired)
    await connection.execute(new)


async def _check(engine: AsyncEngine, row: sa.Row[Any], embedder: Embedder, texts: list[str]) -> ServingModel:
    if row.name != embedder.name:
        raise EmbeddingModelMismatch(
            f"The memories are embedded with {row.name}, but LOREBUS_EMBEDDER asks for {embedder.name}."
            f" Set LOREBUS_EMBEDDER back, or embed them anew: `lorebus reembed start --model {embedder.name}`."
        )
    background = np.frombuffer(row.background, dtype=np.float32).reshape(-1, row.dimensions)
    probe = await embedder.embed(texts[:1])
    if probe.shape[1] != row.dimensions:
        raise EmbeddingModelMismatch(
            f"{row.name} makes vectors of {probe.shape[1]} dimensions; the stored ones have {row.dimensions}."
        )
    if row.background_sha256 != _fingerprint(texts):
        background = await _calibrate_anew(engine, row, embedder, texts)
    elif np.abs(probe[0] - background[0]).max() > _DRIFT_MAX:
        raise EmbeddingModelMismatch(
            f"{row.name} makes other vectors than when the memories were embedded. Install the version used then."
        )
    return ServingModel(id=row.id, embedder=embedder, background=background)


async def _calibrate_anew(engine: AsyncEngine, row: sa.Row[Any], embedder: Embedder, texts: list[str]) -> Vectors:
    """By the texts of this version: similarities are read the same whichever version made the row."""
    background = await embedder.embed(texts)
    async with engine.begin() as connection:
        await connection.execute(sa.update(embedding_models).filter_by(id=row.id).values(**_calibration(background)))
    _log.info("embedding.calibrated_anew", model=row.name)
    return background


def _calibration(background: Vectors) -> dict[str, Any]:
    """The columns that calibrate a model, of its vectors of the background texts."""
    return {
        "background": background.tobytes(),
        "background_sha256": _fingerprint(background_texts()),
        "calibration": {"kind": "background", "texts": len(background)},
    }


def _fingerprint(texts: list[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
