"""Says what a degraded answer means and what to do about it."""

from collections.abc import Sized

from lorebus import ExplainReply, RecallReply, SearchReply
from lorebus.contracts.recall import DegradedReason

from cli.output import note

REMEDIES: dict[DegradedReason, str] = {
    "bus": "the memory cannot be reached: is `lorebus up` running? `lorebus doctor` checks every part",
    "deadline": "the memory did not answer in time: try again, or look with `lorebus doctor`",
    "gate": "the gate is down, so nothing may be shown unscreened: look with `lorebus doctor`",
    "embedder": "the embedder is down, so only words and known errors were looked up: look with `lorebus doctor`",
    "store": "the database is down: look with `lorebus doctor`",
    "invalid_request": "the question was refused",
}


def note_degraded(reply: RecallReply | SearchReply | ExplainReply) -> None:
    """A line on stderr, where the answer is less than it could be."""
    if reply.degraded:
        remedy = REMEDIES[reply.reason] if reply.reason else "part of the memory is down"
        detail = f" ({reply.detail})" if reply.detail else ""
        note(f"degraded: {remedy}{detail}")


def is_unanswered(reply: RecallReply | SearchReply | ExplainReply, answer: Sized | None) -> bool:
    return reply.degraded and not answer
