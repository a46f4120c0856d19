"""Asking for memories. A memory that is down, hung or answers rubbish must never fail an agent.

So each question returns its reply in every case: `degraded` with the reason `bus` or `deadline` where no
service gave a good one. Only a wrong argument raises.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from lorebus.asking import Unanswered, ask
from lorebus.connection import Connection
from lorebus.contracts.envelope import build_message, parse_object
from lorebus.contracts.recall import (
    SCOPE_KEYS,
    DegradedReason,
    ExplainReply,
    ExplainRequest,
    RecallReply,
    RecallRequest,
    SearchReply,
    SearchRequest,
)
from lorebus.contracts.subjects import RECALL_EXPLAIN, RECALL_REQUEST, RECALL_SEARCH, subject_for
from lorebus.errors import InvalidMessage

QUESTION_BYTES_MAX = 512 * 1024
DEADLINE_MARGIN_MS = 20
"""A service that answers at its deadline must still be heard."""

ReplyT = TypeVar("ReplyT", RecallReply, SearchReply, ExplainReply)


async def ask_recall(connection: Connection, tenant: str, fields: Mapping[str, Any]) -> RecallReply:
    if not _asks_something(fields):
        return RecallReply.empty()
    request = build_message(RecallRequest, fields)

    def build_body(left_seconds: float) -> bytes:
        left_ms = max(50, round(left_seconds * 1000) - DEADLINE_MARGIN_MS)
        return request.model_copy(update={"deadline_ms": left_ms}).model_dump_json(exclude_none=True).encode()

    subject = subject_for(RECALL_REQUEST, tenant)
    return await _reply(connection, subject, build_body, request.deadline_ms / 1000, RecallReply)


def _asks_something(fields: Mapping[str, Any]) -> bool:
    """A blank query finds nothing, and nowhere has no memories (spec 5): neither is worth a question."""
    return bool(str(fields["query"]).strip()) and any(fields.get(key) for key in SCOPE_KEYS.values())


async def ask_search(
    connection: Connection, tenant: str, fields: Mapping[str, Any], deadline_seconds: float
) -> SearchReply:
    body = build_message(SearchRequest, fields).model_dump_json().encode()
    subject = subject_for(RECALL_SEARCH, tenant)
    return await _reply(connection, subject, lambda _left: body, deadline_seconds, SearchReply)


async def ask_explain(
    connection: Connection, tenant: str, fields: Mapping[str, Any], deadline_seconds: float
) -> ExplainReply:
    body = build_message(ExplainRequest, fields).model_dump_json(exclude_none=True).encode()
    subject = subject_for(RECALL_EXPLAIN, tenant)
    return await _reply(connection, subject, lambda _left: body, deadline_seconds, ExplainReply)


async def _reply(
    connection: Connection,
    subject: str,
    build_body: Callable[[float], bytes],
    deadline_seconds: float,
    kind: type[ReplyT],
) -> ReplyT:
    size = len(build_body(deadline_seconds))
    if size > QUESTION_BYTES_MAX:
        raise InvalidMessage(f"the question is {size // 1024} KiB; at most {QUESTION_BYTES_MAX // 1024} fit")
    try:
        return _read_reply(kind, await ask(connection, subject, build_body, deadline_seconds))
    except Unanswered as silence:
        return _degraded(kind, silence.reason, silence.detail)
    except InvalidMessage as fault:
        return _degraded(kind, "bus", f"the answer to {subject} cannot be read: {fault}")


def _read_reply(kind: type[ReplyT], body: bytes) -> ReplyT:
    """Every field of a reply has a default, so any object would pass: ask for the one that answers."""
    fields = parse_object(body)
    answer = {RecallReply: "items", SearchReply: "lessons", ExplainReply: "lesson"}[kind]
    if answer not in fields and not fields.get("degraded"):
        raise InvalidMessage(f"{answer}: missing")
    return build_message(kind, fields)


def _degraded(kind: type[ReplyT], reason: DegradedReason, detail: str) -> ReplyT:
    return kind(degraded=True, reason=reason, detail=detail)
