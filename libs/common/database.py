"""Connections to Postgres: SQLAlchemy over asyncpg, vectors in binary both ways.

pgvector's documented SQLAlchemy type sends vectors as text, at 13 times the CPU; here asyncpg's own codec
carries numpy arrays, and the `HalfVector` column type leaves them alone.
"""

from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

import asyncpg
import sqlalchemy as sa
from pgvector.asyncpg import register_vector
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, InterfaceError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from libs.common.errors import SetupIncomplete, StoreUnavailable

PGVECTOR_MIN = (0, 8)
_SCOPE_LOCK = 0x4C42
_ASYNCPG_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
_CONNECTION_LOST = ("57P", "08", "53")
_SERVER_HUNG_UP = "cannot switch to state"  # asyncpg, asked between the server's last words and the end of the socket


def asyncpg_url(url: str) -> sa.URL:
    """`postgresql://…` for SQLAlchemy's asyncpg dialect."""
    return sa.make_url(url).set(drivername="postgresql+asyncpg")


def create_engine(
    url: str,
    application_name: str,
    *,
    connections_max: int = 10,
    timeout_seconds: float = 10.0,
    vectors: bool = True,
) -> AsyncEngine:
    """A pool of connections. `vectors=False` is for the migration that creates the extension."""
    engine = create_async_engine(
        asyncpg_url(url),
        pool_size=connections_max,
        max_overflow=0,
        hide_parameters=True,  # error messages must not repeat memory text
        pool_timeout=timeout_seconds,
        connect_args={
            "timeout": timeout_seconds,
            "command_timeout": timeout_seconds,
            "server_settings": {
                "application_name": f"lorebus-{application_name}",
                "idle_in_transaction_session_timeout": "60000",
                "jit": "off",
            },
        },
    )
    if vectors:
        event.listen(engine.sync_engine, "connect", _register_vectors)
    return engine


async def create_pool(
    url: str, application_name: str, *, connections_max: int, timeout_seconds: float = 10.0
) -> asyncpg.Pool:
    """A bare pool for the recall statement, at a third of the CPU that a query through SQLAlchemy takes.

    Connections keep no state between statements, so that handing one back costs no round trip.
    """
    plain = sa.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    return await asyncpg.create_pool(
        plain,
        min_size=1,
        max_size=connections_max,
        timeout=timeout_seconds,
        command_timeout=timeout_seconds,
        init=register_vector,
        reset=_keep_state,
        server_settings={"application_name": f"lorebus-{application_name}", "jit": "off"},
    )


async def _keep_state(_connection: object) -> None:
    """Nothing to reset."""


def _register_vectors(connection: sa.engine.interfaces.DBAPIConnection, _record: object) -> None:
    connection.run_async(register_vector)


def is_outage(error: BaseException) -> bool:
    """Whether the database, not the statement, is at fault: such errors are retried and never counted."""
    if isinstance(error, OSError | TimeoutError | PoolTimeout | InterfaceError | OperationalError):
        return True
    if isinstance(error, asyncpg.InterfaceError) or (isinstance(error, DBAPIError) and error.connection_invalidated):
        return True
    if isinstance(error, InternalError | asyncpg.InternalClientError):
        return _SERVER_HUNG_UP in str(error)
    cause = error.orig if isinstance(error, DBAPIError) else error
    state = str(getattr(cause, "sqlstate", "") or "")
    return state.startswith(_CONNECTION_LOST) or state in {"40001", "40P01"}


@contextmanager
def outages_as_store_unavailable() -> Generator[None]:
    """Translates a lost or slow database into StoreUnavailable; other errors pass."""
    try:
        yield
    except (OSError, TimeoutError, PoolTimeout, DBAPIError, *_ASYNCPG_ERRORS) as error:
        if is_outage(error):
            raise StoreUnavailable(f"Postgres did not answer: {type(error).__name__}") from error
        raise


@contextmanager
def outages_as_missing_setup() -> Generator[None]:
    """For the start, where a database that does not answer is something for the operator to mend."""
    try:
        with outages_as_store_unavailable():
            yield
    except StoreUnavailable as error:
        cause = type(error.__cause__).__name__
        raise SetupIncomplete(f"Postgres does not answer ({cause}). Start it, or set LOREBUS_DATABASE_URL.") from error


async def check_pgvector(connection: AsyncConnection) -> None:
    """Raises SetupIncomplete when the extension is missing, cannot be had, or is older than 0.8."""
    version: str | None = await connection.scalar(
        sa.text(
            "select coalesce(max(installed_version), max(default_version))"
            " from pg_available_extensions where name = 'vector'"
        )
    )
    check_version(version)


def check_version(version: str | None) -> None:
    """Judges pgvector's version, None where the server does not have it."""
    if version is None:
        raise SetupIncomplete(
            "This Postgres has no pgvector. Install pgvector 0.8 or newer on the server"
            " (image pgvector/pgvector, package postgresql-NN-pgvector), then run `lorebus migrate` again."
        )
    if tuple(int(part) for part in version.split(".")[:2]) < PGVECTOR_MIN:
        raise SetupIncomplete(
            f"This Postgres has pgvector {version}; Lorebus needs 0.8 or newer. Upgrade the package on the"
            " server, run `ALTER EXTENSION vector UPDATE` in the database, then `lorebus migrate` again."
        )


def is_among(column: sa.ColumnElement[Any], values: Iterable[Any]) -> sa.ColumnElement[bool]:
    """As one array: a statement takes 32,767 values at most, and a person may have said more."""
    return column == sa.any_(sa.literal(list(values), sa.ARRAY(column.type)))


def are_among(columns: Sequence[sa.ColumnElement[Any]], rows: Collection[Sequence[Any]]) -> sa.ColumnElement[bool]:
    """`is_among` for several columns together."""
    arrays = [sa.literal([row[n] for row in rows], sa.ARRAY(column.type)) for n, column in enumerate(columns)]
    return sa.tuple_(*columns).in_(sa.select(*map(sa.func.unnest, arrays)))


async def lock_scope(connection: AsyncConnection, scope_id: int) -> None:
    """Until the transaction ends nobody else inserts, supersedes, merges or forgets in this scope."""
    await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_SCOPE_LOCK, scope_id)))
