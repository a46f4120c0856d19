"""One connection to the bus that is up or on its way back, for ever.

An agent must start and go on without the bus, so opening never raises and never waits: the connection
comes up in the background. Callers ask `wait_up`; nothing is sent while it is down, because nats-py would
keep such messages and send them long after their caller gave up.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from typing import Any

from nats.aio.client import Client, Server
from nats.errors import Error

from lorebus.errors import LorebusError
from lorebus.settings import render_url

RECONNECT_SECONDS_MIN = 0.2
RECONNECT_SECONDS_MAX = 2.0
CANCEL_SECONDS = 0.1

log = logging.getLogger("lorebus")
chance = SystemRandom()


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """How to reach the bus. The inbox prefix is what keeps one user's answers from another's eyes."""

    url: str
    name: str = "lorebus"
    credentials: Path | None = None
    inbox_prefix: str = "_INBOX"


class Connection:
    """`open`, `wait_up`, use `.client`, `close`."""

    def __init__(self, options: ConnectionOptions) -> None:
        self.options = options
        self.client = Client()
        self.last_refusal: str | None = None
        """What the server last said about a permission: it tells no caller, who only times out."""
        self.last_fault = ""
        """Why the last attempt to connect failed."""
        self._up = asyncio.Event()
        self._tried = asyncio.Event()
        self._lost = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    @property
    def is_up(self) -> bool:
        return self.client.is_connected

    @property
    def address(self) -> str:
        return render_url(self.options.url)

    def open(self) -> None:
        """Starts connecting and returns at once."""
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._stay_connected(), name="lorebus-connection")

    async def wait_tried(self, timeout_seconds: float) -> bool:
        """Is it up, once the very first attempt has ended? Later answers come at once."""
        self._require_open()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await self._tried.wait()
        return self.is_up

    async def wait_up(self, timeout_seconds: float | None = None) -> bool:
        """Waits until it is up, or for so long."""
        self._require_open()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await self._up.wait()
        return self.is_up

    async def close(self) -> None:
        keeper, self._keeper = self._keeper, None
        while keeper is not None and not keeper.done():
            # Once is not enough: Python 3.11's wait_for, inside connect, can swallow a cancellation.
            keeper.cancel()
            await asyncio.wait({keeper}, timeout=CANCEL_SECONDS)
        self._up.set()  # wakes who waits; it finds the connection closed
        if self.client.is_connected or self.client.is_connecting or self.client.is_reconnecting:
            await self.client.close()

    def _require_open(self) -> None:
        if self._keeper is None:
            raise LorebusError("the client is not open: use it inside `async with Lorebus() as memory:`")

    async def _stay_connected(self) -> None:
        """nats-py reconnects by itself, but closes for good on some refusals of the server: begin anew."""
        while True:
            self._lost.clear()
            self.client = Client()
            try:
                await self.client.connect(**self._nats_options())
            except Error as error:
                # Only what no later attempt can cure, such as a url that is none.
                log.error("cannot connect to the bus at %s: %s", self.address, error)
                await self._note_error(error)
                return
            self._mark_up()
            await self._lost.wait()
            log.warning("the bus at %s closed the connection; trying again", self.address)
            await asyncio.sleep(_pause_seconds())

    def _nats_options(self) -> dict[str, Any]:
        options = self.options
        return {
            "servers": [url.strip() for url in options.url.split(",")],
            "name": options.name,
            "user_credentials": str(options.credentials) if options.credentials else None,
            "inbox_prefix": options.inbox_prefix,
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": _pause_seconds(),
            "reconnect_to_server_handler": _choose_server,
            "ping_interval": 10,
            "max_outstanding_pings": 2,
            "error_cb": self._note_error,
            "disconnected_cb": self._note_down,
            "reconnected_cb": self._note_up,
            "closed_cb": self._note_lost,
        }

    def _mark_up(self) -> None:
        self._tried.set()
        self._up.set()

    async def _note_up(self) -> None:
        log.info("the bus at %s is back", self.address)
        self._mark_up()

    async def _note_down(self) -> None:
        if self._up.is_set() and self._keeper is not None:
            log.warning("the bus at %s is gone; reconnecting", self.address)
        self._up.clear()

    async def _note_lost(self) -> None:
        self._up.clear()
        self._lost.set()

    async def _note_error(self, error: Exception) -> None:
        self._tried.set()
        text = str(error) or type(error).__name__
        if "permissions violation" in text.lower():
            self.last_refusal = text
            log.warning("the bus refused: %s", text)
            return
        log.debug("the bus at %s: %s", self.address, text)
        # A server that refuses us says why, then resets the connection: keep the reason.
        if not (isinstance(error, ConnectionResetError) and self.last_fault):
            self.last_fault = text


def _pause_seconds() -> float:
    return chance.uniform(RECONNECT_SECONDS_MIN, RECONNECT_SECONDS_MAX)


def _choose_server(servers: Sequence[Server], _info: dict[str, Any]) -> tuple[Server, float]:
    """Any server, after a pause of its own: clients of a dead server must not return all at once."""
    return chance.choice(servers), _pause_seconds()
