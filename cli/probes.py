"""Finds the facts that `checks` judges: asks the bus, the database and /readyz. What fails is a fact, too."""

import asyncio
import http.client
import json
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nats
import sqlalchemy as sa
from lorebus import Lorebus
from lorebus.contracts.gate import ScreenedText, ScreenReply, ScreenRequest
from lorebus.contracts.subjects import GATE_SCREEN
from lorebus.settings import render_url
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.errors import Error as JetStreamError
from nats.js.errors import NotFoundError
from pydantic import ValidationError
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from cli.checks import (
    Addresses,
    Answer,
    BusFacts,
    ConsumerState,
    Model,
    Place,
    Readiness,
    StoreFacts,
)
from cli.endpoints import FILE, Endpoints, read_endpoints
from cli.footprint import find_owner
from libs.common.bus.streams import CONSUMERS, STREAMS
from libs.common.database import create_engine
from libs.common.errors import SetupIncomplete
from libs.common.migrate import check_schema
from libs.common.schema import dead_letters, embedding_models, inbox, outbox
from libs.common.settings import CommonSettings

PROBE_SECONDS = 5.0
PROBE_REPOSITORY = "lorebus/doctor"


def find_addresses(nats_url: str | None, data: Path) -> Addresses:
    """The options and the environment first, then what a running `lorebus up` wrote."""
    settings = CommonSettings()
    written = read_endpoints(data)
    source = str(data / FILE)
    database_url = settings.database_url if "database_url" in settings.model_fields_set else None
    owner = find_owner(data)
    return Addresses(
        nats=_place(nats_url, "LOREBUS_NATS_URL", written.nats, source),
        database=_place(database_url, "LOREBUS_DATABASE_URL", written.database, source),
        http=_place(_named_health_url(settings), "LOREBUS_HEALTH_PORT", written.http, source),
        writer_pid=owner.pid,
        writer_lives=written == Endpoints() or owner.lives,
    )


def _place(named: str | None, name: str, written: str | None, source: str) -> Place:
    if named:
        return Place(named, name)
    return Place(written, source) if written else Place()


def _named_health_url(settings: CommonSettings) -> str | None:
    return f"http://{settings.health_host}:{settings.health_port}" if settings.health_port is not None else None


async def probe_bus(url: str) -> BusFacts:
    try:
        client = await nats.connect(url, allow_reconnect=False, connect_timeout=2, error_cb=_ignore)
    except (OSError, TimeoutError, NatsError) as error:
        return BusFacts(fault=_name(error))
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            missing, consumers = await _probe_streams(client)
            answers = [await _timed("gate", _ask_gate(client)), await _timed("recall", _ask_recall(url))]
            version = client.connected_server_version
            shown = f"{version.major}.{version.minor}.{version.patch}"
            return BusFacts(shown, "", missing, consumers, answers)
    except (OSError, TimeoutError, NatsError, JetStreamError) as error:
        return BusFacts(fault=_name(error))
    finally:
        await client.close()


async def _ignore(_error: Exception) -> None:
    """nats-py prints otherwise; what matters comes back as an exception."""


async def _probe_streams(client: Client) -> tuple[list[str], list[ConsumerState]]:
    jetstream = client.jetstream(timeout=2)
    missing: list[str] = []
    for stream in STREAMS:
        try:
            await jetstream.stream_info(stream.name or "")
        except NotFoundError:
            missing.append(f"stream {stream.name}")
    consumers: list[ConsumerState] = []
    for consumer in CONSUMERS:
        try:
            info = await jetstream.consumer_info(consumer.stream, consumer.name)
        except NotFoundError:
            missing.append(f"consumer {consumer.name} of {consumer.stream}")
            continue
        waiting, in_work, readers = info.num_pending or 0, info.num_ack_pending or 0, info.num_waiting or 0
        consumers.append(ConsumerState(consumer.name, waiting, in_work, readers))
    return missing, consumers


async def _timed(service: str, question: Awaitable[str]) -> Answer:
    started = time.perf_counter()
    fault = await question
    return Answer(service, time.perf_counter() - started, fault)


async def _ask_gate(client: Client) -> str:
    """What is wrong with its answer to a harmless text, or nothing."""
    question = ScreenRequest(purpose="recall", texts=[ScreenedText(id="probe", text="the build is green")])
    try:
        reply = await client.request(GATE_SCREEN, question.model_dump_json().encode(), timeout=2)
        status = ScreenReply.model_validate_json(reply.data).status
    except (NatsError, TimeoutError) as error:
        return _name(error)
    except ValidationError:
        return "its answer makes no sense"
    return "" if status == "ok" else f"it says {status}"


async def _ask_recall(url: str) -> str:
    """The same of a search where nothing can be found."""
    async with Lorebus(url, name="lorebus-doctor") as memory:
        reply = await memory.search("is anybody there", repository=PROBE_REPOSITORY, deadline_seconds=2)
    return f"{reply.reason}: {reply.detail or 'degraded'}" if reply.degraded else ""


async def probe_store(url: str) -> StoreFacts:
    engine = create_engine(url, "doctor", connections_max=1, timeout_seconds=PROBE_SECONDS, vectors=False)
    try:
        async with asyncio.timeout(2 * PROBE_SECONDS):
            return await _probe_store(engine)
    except (OSError, TimeoutError, SQLAlchemyError, ValueError) as error:
        return StoreFacts(fault=_name(error))
    finally:
        await engine.dispose()


async def _probe_store(engine: AsyncEngine) -> StoreFacts:
    async with engine.connect() as connection:
        version = int(str(await connection.scalar(sa.text("show server_version_num"))))
        pgvector = await connection.scalar(sa.text("select extversion from pg_extension where extname = 'vector'"))
        try:
            await check_schema(connection)
        except SetupIncomplete as error:
            return StoreFacts(version=version, pgvector=pgvector, schema_fault=str(error))
        return StoreFacts(
            version=version,
            pgvector=pgvector,
            schema=str(await connection.scalar(sa.text("select version_num from alembic_version"))),
            models=await _find_models(connection),
            oldest_claim_seconds=await _age(connection, inbox.c.first_seen_at, inbox.c.status == "claimed"),
            oldest_outbox_seconds=await _age(connection, outbox.c.created_at, sa.true()),
            dead_letters=await _count_dead_letters(connection),
        )


async def _find_models(connection: AsyncConnection) -> Sequence[Model]:
    columns = embedding_models.c
    rows = await connection.execute(sa.select(columns.name, columns.dimensions, columns.state).order_by(columns.id))
    return [Model(row.name, row.dimensions, row.state) for row in rows]


async def _age(connection: AsyncConnection, column: sa.Column[Any], condition: sa.ColumnElement[bool]) -> float | None:
    """Seconds since the oldest, by Postgres' clock; None where there is none."""
    seconds = sa.func.extract("epoch", sa.func.clock_timestamp() - sa.func.min(column))
    age = await connection.scalar(sa.select(seconds).where(condition))
    return None if age is None else float(age)


async def _count_dead_letters(connection: AsyncConnection) -> int:
    query = sa.select(sa.func.count()).select_from(dead_letters).where(dead_letters.c.replayed_at.is_(None))
    return int(await connection.scalar(query) or 0)


async def probe_readiness(address: str) -> Readiness:
    if not address:
        return Readiness()
    try:
        report = await asyncio.to_thread(_get_json, f"{address}/readyz")
        return Readiness(services=report["services"])
    except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
        return Readiness(fault=_name(error))


def _get_json(url: str) -> dict[str, Any]:
    """503 carries a report as well."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PROBE_SECONDS)
    try:
        connection.request("GET", parts.path)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def render_address(url: str) -> str:
    """Without user, password and database."""
    return render_url(url) if url.startswith("nats") else urlsplit(url).netloc.rpartition("@")[2]


def _name(error: Exception) -> str:
    text = str(error).split("\n", 1)[0]
    return f"{type(error).__name__}: {text}"[:160] if text else type(error).__name__
