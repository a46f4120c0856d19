"""What is remembered of a run of a pipeline: one line for the next run to find (spec 3). Pure.

Names and error messages come from outside. They are put on one line, without chat marks, and credentials are masked
before a message is cut, since half a credential can no longer be told.
"""

import asyncio
import re
from datetime import datetime

from pydantic import JsonValue

from lorebus.masking.texts import Masker
from lorebus.pipeline.context import MemoryContext, Work
from lorebus.sessions.fence import drop_chat_marks
from lorebus.sessions.records import Observation

MESSAGE_CHARS_MAX = 240
MESSAGE_CHARS_READ_MAX = 4_000
"""Of the raw message: far more than masking could shrink to MESSAGE_CHARS_MAX."""
TAG_CHARS_MAX = 128
"""A longer one would have the whole digest refused."""
PLACEHOLDER = "unnamed work"
CANCELLATION_NAMES = {"aborterror", "cancellederror"}

_SPACES = re.compile(r"\s+")
_CANCELLED = re.compile("cancell?ed", re.IGNORECASE)


def is_cancellation(error: BaseException) -> bool:
    """Told by its name or its message, as hosts raise errors of their own."""
    if isinstance(error, asyncio.CancelledError) or type(error).__name__.lower() in CANCELLATION_NAMES:
        return True
    return _CANCELLED.search(str(error)) is not None


def build_success(context: MemoryContext, session_id: str | None, masker: Masker, now: datetime) -> Observation:
    work, count = context.work, context.item_count
    made = f" with {_count(count)}" if count is not None else ""
    return Observation(
        f'Work "{_name(work, masker)}" completed{made}.',
        tags=["pipeline-run", *_work_tags(work)],
        metadata=_about(context) | {"completedAt": now.isoformat()},
        session_id=session_id,
        project_id=work.project_id,
    )


def build_failure(
    context: MemoryContext, error: BaseException, session_id: str | None, masker: Masker, now: datetime
) -> Observation:
    work, count = context.work, context.item_count
    ending = "cancelled" if is_cancellation(error) else "failed"
    made = f" ({_count(count)})" if count else ""
    message = _clean(str(error)[:MESSAGE_CHARS_READ_MAX], masker)[:MESSAGE_CHARS_MAX]
    about: dict[str, JsonValue] = {
        "errorMessage": message,
        "errorName": type(error).__name__,
        "failedAt": now.isoformat(),
    }
    return Observation(
        f'Work "{_name(work, masker)}" {ending}{made}: {message or type(error).__name__}',
        tags=["pipeline-run", ending, *_work_tags(work)],
        metadata=_about(context) | about,
        session_id=session_id,
        project_id=work.project_id,
    )


def _name(work: Work, masker: Masker) -> str:
    return _clean(work.name or work.project_id or "", masker) or PLACEHOLDER


def _count(number: int) -> str:
    return f"{number} {'item' if number == 1 else 'items'}"


def _work_tags(work: Work) -> list[str]:
    tag = f"work:{work.slug}" if work.slug else f"work-id:{work.id}"
    return [tag[:TAG_CHARS_MAX]] if work.project_id else []


def _about(context: MemoryContext) -> dict[str, JsonValue]:
    named: dict[str, JsonValue] = {
        "workId": context.work.id,
        "workSlug": context.work.slug,
        "itemCount": context.item_count,
    }
    return {name: value for name, value in named.items() if value is not None}


def _clean(text: str, masker: Masker) -> str:
    return _SPACES.sub(" ", drop_chat_marks(masker.mask_text(text))).strip()
