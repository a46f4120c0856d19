"""Running services: one or more in a process, started together, stopped without losing what is in flight."""

import asyncio
import gc
import signal
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
import structlog
from faststream.nats import NatsBroker
from lorebus.errors import LorebusError
from nats.aio.client import Client
from nats.errors import Error as NatsError
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from libs.common.bus.connection import GRACE_SECONDS, connect, create_broker
from libs.common.bus.streams import check_streams
from libs.common.database import create_engine, outages_as_missing_setup
from libs.common.errors import SetupIncomplete
from libs.common.health import Health, serve_health
from libs.common.logging import configure_logging
from libs.common.migrate import check_schema
from libs.common.settings import CommonSettings
from libs.common.stopping import cancel, finish

_log = structlog.get_logger("run")

STREAM_MISSES_MAX = 3
STOP_SECONDS = 3.0
"""For one step of the stop that should take milliseconds."""

Task = Callable[[], Awaitable[None]]


SettingsT = TypeVar("SettingsT", bound=CommonSettings)


@dataclass(frozen=True)
class Resources(Generic[SettingsT]):
    """What every service is built from: its broker, its connections and its settings."""

    name: str
    settings: SettingsT
    broker: NatsBroker
    engine: AsyncEngine
    client: Client


@dataclass
class Service:
    """A built service: subscriptions are made on its broker; `tasks` run beside them until the stop."""

    name: str
    tasks: Sequence[Task] = ()
    stopping: Sequence[Task] = ()
    """Called first: nothing new is taken, what is in work is finished."""
    closing: Sequence[Task] = ()
    """Called after the last message was handled, before the connections close."""


@dataclass(frozen=True)
class Program(Generic[SettingsT]):
    """A service that can be run. `build` is its composition root: it wires the parts and subscribes."""

    name: str
    settings: type[SettingsT]
    build: Callable[[Resources[SettingsT]], Awaitable[Service]]


AnyProgram = Program[Any]


async def serve(programs: Sequence[AnyProgram]) -> None:
    """Runs the programs until SIGTERM or SIGINT. Raises the error of a program that cannot go on."""
    settings = CommonSettings()
    configure_logging(settings.log_level, settings.log_format)
    stopping = stop_signal()
    async with running(programs, settings) as failed:
        await stop_or_failure(stopping, failed)


def stop_signal() -> asyncio.Event:
    """Set by SIGTERM and SIGINT from now on."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    return stopping


@asynccontextmanager
async def running(programs: Sequence[AnyProgram], settings: CommonSettings) -> AsyncGenerator["asyncio.Future[None]"]:
    """Starts the programs; yields a future that fails when one of their tasks does."""
    health = Health(started=time.monotonic())
    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    async with AsyncExitStack() as stack:
        if settings.health_port is not None:
            await stack.enter_async_context(serve_health(health, settings.health_host, settings.health_port))
        for program in programs:
            await stack.enter_async_context(_run_program(program, settings, health, failed))
        # What is there now stays: looking through it again at every collection would cost recall tens of milliseconds.
        gc.freeze()
        stack.callback(gc.unfreeze)
        health.mark_ready()
        _log.info("run.ready", services=[program.name for program in programs], seconds=round(health.start_seconds, 2))
        yield failed
        health.mark_stopping()


@asynccontextmanager
async def _run_program(
    program: AnyProgram, common: CommonSettings, health: Health, failed: "asyncio.Future[None]"
) -> AsyncGenerator[None]:
    settings = program.settings(**common.model_dump(exclude_unset=True))
    async with _resources(program.name, settings) as resources:
        await _check_setup(resources)
        service = await program.build(resources)
        tasks = [
            asyncio.create_task(_watch(service.name, task, failed))
            for task in (*service.tasks, lambda: _guard_streams(resources))
        ]
        health.add(service.name, lambda: _is_working(resources), lambda: resources.client.is_connected)
        await resources.broker.start()
        try:
            yield
        finally:
            await _stop(service, resources, tasks)


async def _stop(service: Service, resources: Resources[Any], tasks: Sequence[asyncio.Task[None]]) -> None:
    """In this order: no new messages, handlers finish, what they left is written, then the rest stops."""
    for stop in service.stopping:
        await finish(stop, STOP_SECONDS, service=service.name, part="questions")
    await finish(resources.broker.stop, GRACE_SECONDS + STOP_SECONDS, service=service.name, part="messages")
    for close in service.closing:
        await finish(close, STOP_SECONDS, service=service.name, part="leftovers")
    await cancel(tasks)


@asynccontextmanager
async def _resources(name: str, settings: SettingsT) -> AsyncGenerator[Resources[SettingsT]]:
    engine = create_engine(
        settings.database_url,
        name,
        connections_max=settings.database_connections_max,
        timeout_seconds=settings.database_timeout_seconds,
    )
    broker = create_broker(settings.nats_url, name)
    try:
        client = await connect(broker, settings.nats_url)
        yield Resources(name=name, settings=settings, broker=broker, engine=engine, client=client)
    finally:
        await finish(broker.stop, STOP_SECONDS, service=name, part="connection")
        await finish(engine.dispose, STOP_SECONDS, service=name, part="database")


async def _check_setup(resources: Resources[Any]) -> None:
    with outages_as_missing_setup():
        async with resources.engine.connect() as connection:
            await check_schema(connection)
    await check_streams(resources.client)


async def _guard_streams(resources: Resources[Any]) -> None:
    """Raises when a stream or consumer stays away: FastStream would ask for it 3,700 times a second, for ever."""
    misses = 0
    while misses < STREAM_MISSES_MAX:
        await asyncio.sleep(resources.settings.streams_check_seconds)
        try:
            await check_streams(resources.client)
        except SetupIncomplete as error:
            misses += 1
            if misses == STREAM_MISSES_MAX:
                raise
            _log.warning("run.streams_missing", service=resources.name, reason=str(error))
        except (OSError, NatsError, TimeoutError):
            continue  # no answer is an outage, and outages end
        else:
            misses = 0


async def _is_working(resources: Resources[Any]) -> dict[str, str]:
    """Each part that a service stands on: `ok`, or what is wrong with it."""
    return {
        "database": await _check(_ping_database(resources.engine)),
        "bus": await _check(resources.client.flush(timeout=1)),
        "streams": await _check(check_streams(resources.client)),
    }


async def _ping_database(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        await connection.execute(sa.select(1))


async def _check(part: Awaitable[object]) -> str:
    try:
        async with asyncio.timeout(2):
            await part
    except (LorebusError, OSError, TimeoutError, NatsError, SQLAlchemyError) as error:
        return type(error).__name__
    return "ok"


async def _watch(service: str, task: Task, failed: "asyncio.Future[None]") -> None:
    try:
        await task()
    except Exception as error:  # a task that ends by an error leaves a half-dead service: better to stop it whole
        _log.error("run.task_failed", service=service, error=type(error).__name__, exc_info=True)
        if not failed.done():
            failed.set_exception(error)
        raise


async def stop_or_failure(stopping: asyncio.Event, failed: "asyncio.Future[None]") -> None:
    """Waits for either; raises what failed."""
    stop = asyncio.create_task(stopping.wait())
    await asyncio.wait({stop, failed}, return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if failed.done():
        failed.result()
