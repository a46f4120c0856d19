"""The database as operators' commands reach it: LOREBUS_DATABASE_URL, else the one of a running `lorebus up`."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncEngine

from cli.endpoints import EndpointsUnknown, read_endpoints
from libs.common.database import create_engine, outages_as_store_unavailable
from libs.common.settings import CommonSettings


def find_database_url(data: Path) -> str:
    """Raises EndpointsUnknown, which says how to get a database."""
    settings = CommonSettings()
    if "database_url" in settings.model_fields_set:
        return settings.database_url
    if found := read_endpoints(data).database:
        return found
    raise EndpointsUnknown("no database is known: start one with `lorebus up`, or name one with LOREBUS_DATABASE_URL")


@asynccontextmanager
async def open_database(data: Path) -> AsyncGenerator[AsyncEngine]:
    engine = create_engine(find_database_url(data), "cli", connections_max=2)
    try:
        with outages_as_store_unavailable():
            yield engine
    finally:
        await engine.dispose()
