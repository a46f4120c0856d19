"""Asks a service to keep something, and asks again while time can cure the answer.

Only for questions that count once however often they are asked.
"""

from typing import TypeVar

from lorebus.asking import Unanswered, ask
from lorebus.connection import Connection
from lorebus.contracts.envelope import parse_message
from lorebus.contracts.evidence import PutEvidenceReply
from lorebus.contracts.memory import SaveReply
from lorebus.errors import InvalidMessage
from lorebus.patience import Patience

ATTEMPT_SECONDS = 5.0
CURABLE = frozenset({"store", "gate", "embedder", "in_work"})
"""Refusals that may be gone at the next attempt."""

ReplyT = TypeVar("ReplyT", PutEvidenceReply, SaveReply)


async def insist(
    connection: Connection, subject: str, body: bytes, kind: type[ReplyT], patience_seconds: float
) -> ReplyT:
    """The reply; when patience ends, the last refusal. Raises Unanswered when there was none either."""
    patience = Patience(patience_seconds)
    while True:
        result = await _attempt(connection, subject, body, kind, min(ATTEMPT_SECONDS, patience.left_seconds))
        if not isinstance(result, Unanswered) and result.error not in CURABLE:
            return result
        if not await patience.pause():
            break
    if isinstance(result, Unanswered):
        raise result
    return result


async def _attempt(
    connection: Connection, subject: str, body: bytes, kind: type[ReplyT], deadline_seconds: float
) -> ReplyT | Unanswered:
    try:
        return _read(kind, await ask(connection, subject, lambda _left: body, deadline_seconds))
    except Unanswered as silence:
        return silence
    except InvalidMessage as fault:
        return Unanswered("bus", f"the answer to {subject} cannot be read: {fault}")


def _read(kind: type[ReplyT], body: bytes) -> ReplyT:
    """Every field of a reply has a default, so any object would pass: it must say yes or no."""
    reply = parse_message(kind, body)
    said = reply.ref if isinstance(reply, PutEvidenceReply) else reply.id
    if said is None and reply.error is None:
        raise InvalidMessage("it says neither yes nor no")
    return reply
