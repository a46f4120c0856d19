"""A connection to NATS as every service makes it.

FastStream's defaults give up after sixty tries and leave a process that lives but hears nothing; ours
reconnects for ever, notices a hung server within half a minute and logs what the server refuses.
"""

import structlog
from faststream.message import StreamMessage
from faststream.nats import NatsBroker
from nats.aio.msg import Msg

_log = structlog.get_logger("bus")


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
        graceful_timeout=15.0,
        error_cb=_on_error,
        disconnected_cb=_on_disconnect,
        reconnected_cb=_on_reconnect,
    )
