"""Which model serves: taking one up to build, letting it take over, sending it away. Statements on `embedding_models`.

building → serving → retired, and back. `completed_at` says since when a model has a vector of every memory: only such
a one may serve, and a retired one that has it may come back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.common.schema import embedding_models

_models = embedding_models.c


@dataclass(frozen=True, slots=True)
class ModelRow:
    id: int
    name: str
    dimensions: int
    state: str
    completed_at: datetime | None
    retired_at: datetime | None


async def find_model(connection: AsyncConnection, **is_: object) -> ModelRow | None:
    """The one that fits: `name=`, `state=`."""
    return next(iter(await find_models(connection, **is_)), None)


async def find_models(connection: AsyncConnection, **is_: object) -> Sequence[ModelRow]:
    columns = [_models[name] for name in ModelRow.__dataclass_fields__]
    rows = await connection.execute(sa.select(*columns).filter_by(**is_).order_by(_models.id))
    return [ModelRow(**row) for row in rows.mappings()]


async def lock_models(connection: AsyncConnection) -> None:
    """Nobody stores a memory, and no other model takes over, until the transaction ends.

    A write holds the row of its model (`hold_serving`, and the foreign key of its vector), so this waits for those in
    flight, and those that come later find out that another model serves.
    """
    await connection.execute(sa.select(_models.id).order_by(_models.id).with_for_update())


async def begin_building(connection: AsyncConnection, model_id: int) -> None:
    """Writes embed with it as well from now on. Whatever else was being built is given up."""
    others = sa.update(embedding_models).where(_models.state == "building", _models.id != model_id)
    await connection.execute(others.values(state="retired", retired_at=sa.func.now()))
    mine = sa.update(embedding_models).where(_models.state == "retired", _models.id == model_id)
    await connection.execute(mine.values(state="building", retired_at=None))


async def give_up(connection: AsyncConnection, model_id: int) -> None:
    """Its vectors stay for a while, so that a next try need not make them again."""
    mine = sa.update(embedding_models).where(_models.state == "building", _models.id == model_id)
    await connection.execute(mine.values(state="retired", retired_at=sa.func.now()))


async def cut_over(connection: AsyncConnection, model_id: int) -> None:
    """In one statement the model serves and the one before it does not. Both are locked."""
    retired = (
        sa.update(embedding_models)
        .where(_models.state == "serving", _models.id != model_id)
        .values(state="retired", retired_at=sa.func.now())
        .returning(_models.id)
        .cte("retired")
    )
    # `exists` runs first: the index allows one serving model at any moment.
    is_free = sa.exists(sa.select(retired.c.id))
    taking_over = sa.update(embedding_models).where(_models.id == model_id, is_free)
    await connection.execute(taking_over.values(state="serving", completed_at=sa.func.now(), retired_at=None))
