"""Asking another service: one request, one typed reply or an error that says nobody answered.

On the bare client: FastStream's publisher would add a fifth of the time and nothing that an answer needs.
"""

from typing import TypeVar

from lorebus.contracts.envelope import Message, parse_message
from lorebus.errors import MemoryUnavailable
from nats.aio.client import Client
from nats.errors import Error as NatsError

ReplyT = TypeVar("ReplyT", bound=Message)


async def ask(
    client: Client, subject: str, question: Message, reply: type[ReplyT], *, timeout_seconds: float
) -> ReplyT:
    """Raises MemoryUnavailable when nobody answers in time, InvalidMessage when the answer makes no sense."""
    body = question.model_dump_json(by_alias=True).encode()
    try:
        answer = await client.request(subject, body, timeout=timeout_seconds)
    except (TimeoutError, OSError, NatsError) as error:
        raise MemoryUnavailable(f"{subject} was not answered: {type(error).__name__}") from error
    return parse_message(reply, answer.data)
