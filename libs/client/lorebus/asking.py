"""A question to a service, answered in time or not at all.

One hung member of a queue group swallows its share of the questions and nobody notices (core NATS does
not). So a question that stays unanswered for half its time is sent once more, usually to another member,
and the first answer of the two counts. Where no service listens at all, the bus says so at once: then one
more try after a moment, since a service may be restarting.
"""

import asyncio
from collections.abc import Callable

from nats.aio.client import Client
from nats.errors import Error, NoRespondersError

from lorebus.connection import Connection
from lorebus.contracts.recall import DegradedReason
from lorebus.errors import MemoryUnavailable

RETRY_AFTER_SHARE = 0.5
ABSENT_PAUSE_SECONDS = 0.1

Fault = Error | OSError
Attempt = asyncio.Task[bytes | Fault]


class Unanswered(MemoryUnavailable):
    """Nobody answered, for this reason."""

    def __init__(self, reason: DegradedReason, detail: str) -> None:
        super().__init__(detail)
        self.reason: DegradedReason = reason
        self.detail = detail


async def ask(
    connection: Connection,
    subject: str,
    build_body: Callable[[float], bytes],
    deadline_seconds: float,
) -> bytes:
    """The answer's bytes. `build_body` gets the seconds that are left. Raises Unanswered."""
    now = asyncio.get_running_loop().time
    asked = now()
    if not await connection.wait_tried(deadline_seconds):
        raise Unanswered("bus", _unreachable(connection))
    attempts: set[Attempt] = set()
    fault: Fault | None = None
    try:
        for share in (RETRY_AFTER_SHARE, 1.0):
            left = deadline_seconds - (now() - asked)
            attempts.add(_start_attempt(connection.client, subject, build_body(left), left))
            answer = await _first_answer(attempts, asked + share * deadline_seconds)
            if isinstance(answer, bytes):
                return answer
            fault = answer
            if not attempts and share < 1:
                await asyncio.sleep(min(ABSENT_PAUSE_SECONDS, deadline_seconds / 4))
    finally:
        for attempt in attempts:
            attempt.cancel()
    raise _explain(connection, subject, fault, deadline_seconds)


def _start_attempt(client: Client, subject: str, body: bytes, timeout_seconds: float) -> Attempt:
    async def attempt() -> bytes | Fault:
        try:
            message = await client.request(subject, body, timeout=timeout_seconds)
        except (Error, OSError) as error:
            return error
        return message.data

    return asyncio.create_task(attempt())


async def _first_answer(attempts: set[Attempt], until: float) -> bytes | Fault | None:
    """The first answer, or the last fault once all attempts failed, or None at that time."""
    now = asyncio.get_running_loop().time
    fault: Fault | None = None
    while attempts and now() < until:
        done, _ = await asyncio.wait(attempts, timeout=until - now(), return_when=asyncio.FIRST_COMPLETED)
        for attempt in done:
            attempts.discard(attempt)
            result = attempt.result()
            if isinstance(result, bytes):
                return result
            fault = result
    return fault


def _explain(connection: Connection, subject: str, fault: Fault | None, deadline_seconds: float) -> Unanswered:
    if isinstance(fault, NoRespondersError):
        return Unanswered("bus", f"no service answers {subject}")
    if not connection.is_up:
        return Unanswered("bus", _unreachable(connection))
    refusal = connection.last_refusal
    if refusal and subject in refusal:
        return Unanswered("bus", refusal)
    return Unanswered("deadline", f"no answer to {subject} within {deadline_seconds:g} s")


def _unreachable(connection: Connection) -> str:
    why = f" ({connection.last_fault})" if connection.last_fault else ""
    return f"the bus at {connection.address} cannot be reached{why}"
