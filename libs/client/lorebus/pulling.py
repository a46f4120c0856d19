"""Pulls messages of one short-lived JetStream consumer, and notices when it cannot be trusted any more."""

import contextlib
import json
from dataclasses import dataclass

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error, NotJSMessageError
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig

BATCH = 256
PULL_SECONDS = 20.0
HEARTBEAT_SECONDS = 1.0
SILENCE_SECONDS_MAX = 2.5
PULL_ENDED = "408"
HEARTBEAT = "100"


@dataclass(slots=True)
class Pull:
    """One consumer, and the inbox that its messages arrive in."""

    client: Client
    stream: str
    consumer: str
    inbox: Subscription
    sequence_before: int
    """The stream's sequence that the consumer starts behind."""
    left: int = 0
    """How many messages the running request may still bring."""
    count: int = 0

    async def next_message(self) -> Msg | None:
        """The next message, or None when the consumer is gone or has skipped one."""
        while True:
            try:
                if self.left == 0:
                    await self._request()
                message = await self.inbox.next_msg(timeout=SILENCE_SECONDS_MAX)
            except (Error, OSError):
                return None
            status = (message.headers or {}).get("Status")
            if status is None:
                return message if self._is_next(message) else None
            if status == PULL_ENDED:
                self.left = 0
            elif status != HEARTBEAT:
                return None

    async def close(self) -> None:
        # Whatever fails here, the server forgets an unused consumer by itself.
        with contextlib.suppress(Error, OSError):
            await self.inbox.unsubscribe()
        if self.client.is_connected:
            with contextlib.suppress(Error, OSError):
                await JetStreamContext(self.client, timeout=1).delete_consumer(self.stream, self.consumer)

    async def _request(self) -> None:
        self.left = BATCH
        wanted = {
            "batch": BATCH,
            "expires": int(PULL_SECONDS * 1e9),
            "idle_heartbeat": int(HEARTBEAT_SECONDS * 1e9),
        }
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self.stream}.{self.consumer}"
        await self.client.publish(subject, json.dumps(wanted).encode(), reply=self.inbox.subject)

    def _is_next(self, message: Msg) -> bool:
        self.left -= 1
        self.count += 1
        try:
            return message.metadata.sequence.consumer == self.count
        except NotJSMessageError:
            return False


async def open_pull(client: Client, stream: str, config: ConsumerConfig) -> Pull:
    """Creates the consumer. Raises what JetStream says when it cannot."""
    # The annotations of nats-py leave parameters of these two open.
    info = await JetStreamContext(client, timeout=2).add_consumer(stream, config)  # pyright: ignore[reportUnknownMemberType]
    inbox = await client.subscribe(client.new_inbox())  # pyright: ignore[reportUnknownMemberType]
    before = info.delivered.stream_seq if info.delivered else 0
    return Pull(client, stream, info.name, inbox, before)
