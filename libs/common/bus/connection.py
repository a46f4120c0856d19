"""A connection to NATS as every service makes it.

FastStream's defaults give up after sixty tries and leave a process that lives but hears nothing; ours
reconnects for ever, notices a hung server within half a minute and logs what the server refuses.
"""

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit

import structlog
from faststream.message import StreamMessage
from faststream.nats import NatsBroker
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from libs.common.errors import SetupIncomplete

_log = structlog.get_logger("bus")

GRACE_SECONDS = 15.0
"""How long handlers in work may take to finish at a stop."""


async def whole_message(message: StreamMessage[Msg]) -> StreamMessage[Msg]:
    """FastStream decoder that decodes nothing: consumers parse raw bytes, so that they can answer for bad ones."""
    return message


async def _on_error(error: Exception) -> None:
    # Refused subjects and slow consumers are reported here and nowhere else.
    _log.warning("bus.error_reported", error=type(error).__name__, detail=str(error)[:200])


async def _on_disconnect() -> None:
    _log.info("bus.disconnected")


async def _on_reconnect() -> None:
    _log.info("bus.reconnected")


def create_broker(url: str, name: str) -> NatsBroker:
    """A FastStream broker whose handlers receive whole messages."""
    return NatsBroker(
        url,
        name=f"lorebus-{name}",
        apply_types=False,
        decoder=whole_message,
        logger=None,
        max_reconnect_attempts=-1,
        reconnect_time_wait=1,
        ping_interval=10,
        max_outstanding_pings=2,
        connect_timeout=5,
        graceful_timeout=GRACE_SECONDS,
        error_cb=_on_error,
        disconnected_cb=_on_disconnect,
        reconnected_cb=_on_reconnect,
    )


async def connect(broker: NatsBroker, url: str, *, patience_seconds: float = 10.0) -> Client:
    """Connects for the first time. Raises SetupIncomplete when no server is there.

    Asked to reconnect for ever, nats-py also waits for ever for a server that never was, so the port is tried first.
    """
    try:
        async with asyncio.timeout(patience_seconds):
            while not await _answers(url):  # noqa: ASYNC110 - a server that starts tells nobody
                await asyncio.sleep(0.1)
        return await broker.connect()
    except (OSError, NatsError, TimeoutError) as error:
        raise SetupIncomplete(
            f"NATS does not answer at {_without_password(url)}. Start it, or set LOREBUS_NATS_URL."
        ) from error


async def _answers(url: str) -> bool:
    """Whether any of the comma-separated servers takes connections."""
    for server in url.split(","):
        address = urlsplit(server if "//" in server else f"nats://{server}")
        with suppress(OSError):
            _, writer = await asyncio.open_connection(address.hostname, address.port or 4222)
            writer.close()
            return True
    return False


def _without_password(url: str) -> str:
    return ",".join(server.rpartition("@")[2] for server in url.split(","))
