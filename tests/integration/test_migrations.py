"""The schema: what the migrations make is what the code declares."""

import asyncio

import pytest
from alembic import command
from sqlalchemy.dialects.postgresql import base as postgresql

from libs.common.database import PGVECTOR_MIN, check_version, create_engine
from libs.common.errors import SetupIncomplete
from libs.common.migrate import alembic_config, check_schema, migrate_database
from libs.common.schema import HalfVector
from libs.common.settings import CommonSettings


async def test_the_migrations_make_the_declared_schema(
    servers: CommonSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(postgresql.ischema_names, "halfvec", HalfVector)
    engine = create_engine(servers.database_url, "tests")
    async with engine.connect() as connection:
        await connection.run_sync(lambda sync: command.check(alembic_config(sync)))
    await engine.dispose()


async def test_several_copies_may_migrate_at_once(empty_database: str) -> None:
    await asyncio.gather(*(migrate_database(empty_database) for _ in range(4)))
    engine = create_engine(empty_database, "tests")
    async with engine.connect() as connection:
        await check_schema(connection)
    await engine.dispose()


async def test_a_database_that_was_never_migrated_is_refused_with_the_remedy(empty_database: str) -> None:
    engine = create_engine(empty_database, "tests", vectors=False)
    async with engine.connect() as connection:
        with pytest.raises(SetupIncomplete, match="lorebus migrate"):
            await check_schema(connection)
    await engine.dispose()


@pytest.mark.parametrize(
    ("version", "remedy"),
    [(None, "has no pgvector"), ("0.7.4", "ALTER EXTENSION vector UPDATE"), ("0.5", "needs 0.8 or newer")],
)
def test_an_old_or_missing_pgvector_is_refused_with_the_remedy(version: str | None, remedy: str) -> None:
    with pytest.raises(SetupIncomplete, match=remedy):
        check_version(version)


@pytest.mark.parametrize("version", [".".join(map(str, PGVECTOR_MIN)), "0.8.6", "0.10.0", "1.0"])
def test_a_pgvector_that_is_new_enough_is_accepted(version: str) -> None:
    check_version(version)
