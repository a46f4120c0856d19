"""Answering questions: whatever arrives and whatever breaks, the caller gets a typed reply in time.

On the bare client, not on FastStream: its subscriber handles one question after the other, so that one that waits
for a hung gate would hold up all behind it, and it sends nothing at all when a handler raises.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import structlog
from lorebus.contracts.envelope import Message, parse_message
from lorebus.contracts.subjects import tenant_of
from lorebus.errors import InvalidMessage
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

_log = structlog.get_logger("bus")

AT_ONCE_MAX = 64
"""Questions in work at once; more wait in the subscription."""

QuestionT = TypeVar("QuestionT", bound=Message)
ReplyT = TypeVar("ReplyT", bound=Message)


@dataclass(frozen=True)
class Answerer(Generic[QuestionT, ReplyT]):
    """How one kind of question is answered, and what is said when it cannot be."""

    question: type[QuestionT]
    answer: Callable[[QuestionT, str], Awaitable[ReplyT]]
    """The question and its tenant. Handles its own failures; what escapes is a defect."""
    invalid: Callable[[str], ReplyT]
    """The reply to a question that does not fit its contract; the text names the fields."""
    broken: Callable[[], ReplyT]
    """The reply when answering failed for a reason nobody foresaw."""

    async def reply_to(self, body: bytes, subject: str, base: str) -> ReplyT:
        """The reply to a question on `subject`, whose tenant is what follows `base`."""
        try:
            return await self.answer(parse_message(self.question, body), tenant_of(subject, base))
        except InvalidMessage as error:
            return self.invalid(str(error))
        except Exception as error:  # noqa: BLE001 - silence is the one answer that a caller cannot use
            _log.error("bus.answer_failed", question=self.question.__name__, error=type(error).__name__, exc_info=True)
            return self.broken()


class Answering:
    """Subscriptions of a service to questions, and the questions in work."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._subscriptions: list[Subscription] = []
        self._slots = asyncio.Semaphore(AT_ONCE_MAX)
        self._in_work: set[asyncio.Task[None]] = set()

    async def subscribe(self, subject: str, queue: str, answerer: Answerer[Any, Any]) -> None:
        """Answers `subject` for the default tenant and `subject.<tenant>`, sharing the work within the queue group."""

        async def receive(message: Msg) -> None:
            await self._slots.acquire()
            task = asyncio.create_task(self._respond(message, subject, answerer))
            self._in_work.add(task)
            task.add_done_callback(self._finish)

        for name in (subject, f"{subject}.*"):
            self._subscriptions.append(await self._client.subscribe(name, queue=queue, cb=receive))

    async def stop(self) -> None:
        """Takes no more questions, and answers those that it has."""
        for subscription in self._subscriptions:
            await subscription.drain()
        await asyncio.gather(*self._in_work, return_exceptions=True)

    async def _respond(self, message: Msg, subject: str, answerer: Answerer[Any, Any]) -> None:
        reply = await answerer.reply_to(message.data, message.subject, subject)
        if message.reply:
            await self._client.publish(message.reply, reply.model_dump_json().encode())

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._slots.release()
        self._in_work.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _log.warning("bus.reply_lost", error=type(error).__name__)
