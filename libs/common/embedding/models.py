"""The serving model as a row: the first start writes it, later starts check that nothing has changed.

The row keeps the model's vectors of 256 fixed background texts, against which every similarity is read
(`domain/calibration`). A model that makes other vectors under the same name would silently spoil recall.
"""

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.embedding.port import Embedder, Vectors
from libs.common.errors import EmbeddingModelMismatch, SetupIncomplete
from libs.common.schema import embedding_models

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


async def open_model(engine: AsyncEngine, embedder: Embedder) -> ServingModel:
    """Raises EmbeddingModelMismatch when rows of another model are being served."""
    texts = background_texts()
    async with engine.begin() as connection:
        row = await _find_serving(connection)
    if row is None:
        vectors = await embedder.embed(texts)
        async with engine.begin() as connection:
            await _insert(connection, embedder, vectors, texts)
            row = await _find_serving(connection)
    if row is None:
        raise SetupIncomplete("No embedding model serves. Run `lorebus migrate`.")
    return await _check(row, embedder, texts)


async def _find_serving(connection: AsyncConnection) -> sa.Row[Any] | None:
    query = sa.select(embedding_models).where(embedding_models.c.state == "serving")
    return (await connection.execute(query)).one_or_none()


async def _insert(connection: AsyncConnection, embedder: Embedder, vectors: Vectors, texts: list[str]) -> None:
    dimensions = vectors.shape[1]
    if dimensions > DIMENSIONS_MAX:
        raise SetupIncomplete(
            f"{embedder.name} makes vectors of {dimensions} dimensions; at most {DIMENSIONS_MAX} can be recalled"
            " exactly. Set LOREBUS_EMBEDDING_DIMENSIONS to a smaller length if the model offers one."
        )
    model = insert(embedding_models).values(
        name=embedder.name,
        dimensions=dimensions,
        state="serving",
        background=vectors.tobytes(),
        background_sha256=_fingerprint(texts),
        calibration={"kind": "background", "texts": len(texts)},
    )
    await connection.execute(model.on_conflict_do_nothing())


async def _check(row: sa.Row[Any], embedder: Embedder, texts: list[str]) -> ServingModel:
    if row.name != embedder.name:
        raise EmbeddingModelMismatch(
            f"The memories are embedded with {row.name}, but LOREBUS_EMBEDDER asks for {embedder.name}."
            " Set LOREBUS_EMBEDDER back, or start with an empty database."
        )
    background = np.frombuffer(row.background, dtype=np.float32).reshape(-1, row.dimensions)
    probe = await embedder.embed(texts[:1])
    if row.background_sha256 == _fingerprint(texts) and np.abs(probe[0] - background[0]).max() > _DRIFT_MAX:
        raise EmbeddingModelMismatch(
            f"{row.name} makes other vectors than when the memories were embedded. Install the version used then."
        )
    return ServingModel(id=row.id, embedder=embedder, background=background)


def _fingerprint(texts: list[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
