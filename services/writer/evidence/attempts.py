"""Which of a run's attempts count, and in which order: of one retried activity only its last try (spec 4.5)."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from lorebus.contracts.runs import CiAttempt, OtherAttempt, ReviewAttempt

AttemptT = TypeVar("AttemptT", ReviewAttempt, CiAttempt, OtherAttempt)

_THE_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)


def last_tries(attempts: Sequence[AttemptT]) -> list[list[AttemptT]]:
    """What happened, in time order; each a list of the rows that tell of it.

    The rows of an activity's highest try stand for the activity, at their own place in time. Without an activity id
    nothing says that two rows are tries of one thing: those of one batch belong together, all others stand alone.
    """
    groups: dict[object, list[AttemptT]] = {}
    for place, attempt in enumerate(in_time_order(attempts)):
        key = _group_key(attempt, place)
        known = groups.get(key)
        if known is None or attempt.attempt > known[0].attempt:
            groups.pop(key, None)
            groups[key] = [attempt]
        elif attempt.attempt == known[0].attempt:
            known.append(attempt)
    return list(groups.values())


def _group_key(attempt: ReviewAttempt | CiAttempt | OtherAttempt, place: int) -> object:
    if attempt.activity_id:
        return "activity", attempt.execution_id, attempt.activity_id
    return ("batch", attempt.batch, attempt.attempt) if attempt.batch else place


def in_time_order(attempts: Iterable[AttemptT]) -> list[AttemptT]:
    """By time, then by sequence number; as they were given where not all of them say when they were."""
    given = list(attempts)
    if any(attempt.at is None for attempt in given):
        return sorted(given, key=lambda attempt: attempt.seq)
    return sorted(given, key=lambda attempt: (_in_utc(attempt.at), attempt.seq))


def _in_utc(moment: datetime | None) -> datetime:
    known = moment or _THE_BEGINNING
    return known if known.tzinfo else known.replace(tzinfo=UTC)
