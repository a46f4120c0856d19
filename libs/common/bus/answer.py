"""Answering questions: whatever arrives and whatever breaks, the caller gets a typed reply in time.

FastStream sends nothing at all when a handler raises; the caller would wait for its own time-out.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import structlog
from faststream.message import StreamMessage
from faststream.nats import NatsBroker
from lorebus.contracts.envelope import Message, parse_message
from lorebus.contracts.subjects import tenant_of
from lorebus.errors import InvalidMessage

_log = structlog.get_logger("bus")

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

    def subscribe(self, broker: NatsBroker, subject: str, queue: str) -> None:
        """Answers `subject` for the default tenant and `subject.<tenant>`, sharing the work within the queue group."""

        async def respond(message: StreamMessage[Any]) -> bytes:
            tenant = tenant_of(message.raw_message.subject, subject)
            reply = await self._reply_to(message.body, tenant)
            return reply.model_dump_json().encode()

        for name in (subject, f"{subject}.*"):
            broker.subscriber(name, queue=queue)(respond)

    async def _reply_to(self, body: bytes, tenant: str) -> ReplyT:
        try:
            return await self.answer(parse_message(self.question, body), tenant)
        except InvalidMessage as error:
            return self.invalid(str(error))
        except Exception as error:  # noqa: BLE001 - silence is the one answer that a caller cannot use
            _log.error("bus.answer_failed", question=self.question.__name__, error=type(error).__name__, exc_info=True)
            return self.broken()
