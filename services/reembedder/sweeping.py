"""Taking away the vectors of models that serve no more, once nobody may want them back."""

import asyncio

import sqlalchemy as sa
import structlog
from lorebus.contracts.envelope import DEFAULT_TENANT
from sqlalchemy.ext.asyncio import AsyncEngine

from libs.common.administered_settings import AdministeredSettings
from libs.common.database import outages_as_store_unavailable
from libs.common.domain.setting_keys import EMBEDDING_RETENTION_DAYS
from libs.common.errors import StoreUnavailable
from libs.common.schema import embedding_models
from services.reembedder.rows import delete_vectors

_log = structlog.get_logger("reembedder")

SWEEP_SECONDS = 3_600.0
ROWS_AT_ONCE = 2_000

_models = embedding_models.c


class Sweeping:
    def __init__(self, engine: AsyncEngine, settings: AdministeredSettings) -> None:
        self._engine = engine
        self._settings = settings

    async def run(self) -> None:
        while True:
            await self.sweep()
            await asyncio.sleep(SWEEP_SECONDS)

    async def sweep(self) -> None:
        """Once; an outage leaves it to the next round."""
        try:
            days = await self._settings.get(EMBEDDING_RETENTION_DAYS, DEFAULT_TENANT)
            for name in await self._find_outdated(days):
                deleted = await self._delete(name)
                _log.info("reembedder.vectors_deleted", model=name, count=deleted)
        except StoreUnavailable as error:
            _log.warning("reembedder.sweep_failed", reason=str(error))

    async def _find_outdated(self, days: int) -> list[str]:
        """Those cannot come back from now on: half of their vectors would be worse than none."""
        is_outdated = _models.retired_at < sa.func.now() - sa.func.make_interval(0, 0, 0, days)
        ended = sa.update(embedding_models).where(_models.state == "retired", is_outdated).values(completed_at=None)
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                return list((await connection.execute(ended.returning(_models.name))).scalars())

    async def _delete(self, name: str) -> int:
        """In small transactions; in each the model is still retired, and none takes it up meanwhile."""
        total = 0
        while deleted := await self._delete_some(name):
            total += deleted
        return total

    async def _delete_some(self, name: str) -> int:
        mine = sa.select(_models.id).where(_models.name == name, _models.state == "retired")
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                if (await connection.execute(mine.with_for_update())).one_or_none() is None:
                    return 0
                deleted = await delete_vectors(connection, name, limit=ROWS_AT_ONCE)
                if deleted == 0:
                    swept = sa.update(embedding_models).where(_models.name == name).values(retired_at=None)
                    await connection.execute(swept)
                return deleted
