"""Brings a database to this version's schema: extensions, tables, nothing else.

Any number of copies may call it at once: one advisory lock lets them through one by one.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.common.database import check_pgvector, create_engine
from libs.common.errors import SetupIncomplete

_LOCK = 0x10_4E_B5
_EXTENSIONS = ("vector",)


def alembic_config(connection: sa.Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


async def migrate_database(url: str) -> None:
    """Creates or upgrades the schema. Raises SetupIncomplete when the server lacks pgvector 0.8."""
    engine = create_engine(url, "migrate", timeout_seconds=120, vectors=False)
    try:
        async with engine.connect() as connection:
            await connection.execute(sa.select(sa.func.pg_advisory_lock(_LOCK)))
            await check_pgvector(connection)
            for extension in _EXTENSIONS:
                await connection.execute(sa.text(f"create extension if not exists {extension}"))
            await connection.commit()
            await connection.run_sync(lambda sync: command.upgrade(alembic_config(sync), "head"))
            await connection.commit()
    finally:
        await engine.dispose()


async def check_schema(connection: AsyncConnection) -> None:
    """Raises SetupIncomplete when the schema is older than this code. A newer one is accepted."""
    current = await connection.run_sync(lambda sync: MigrationContext.configure(sync).get_current_revision())
    script = await connection.run_sync(lambda sync: ScriptDirectory.from_config(alembic_config(sync)))
    known = [revision.revision for revision in script.walk_revisions()]
    if current is None or current in known[1:]:
        raise SetupIncomplete(
            f"The schema is at {current or 'nothing'}, this version needs {known[0]}. Run `lorebus migrate`."
        )
