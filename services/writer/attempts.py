"""Which of a run's attempts count: of one retried activity only its last try."""

from collections.abc import Iterable
from typing import TypeVar

from lorebus.contracts.runs import CiAttempt, ReviewAttempt

AttemptT = TypeVar("AttemptT", ReviewAttempt, CiAttempt)


def last_tries(attempts: Iterable[AttemptT]) -> list[AttemptT]:
    """The attempts in time order, where the highest try of an activity stands for all its tries.

    Without an activity id nothing says that two attempts are tries of one thing, so each counts.
    """
    kept: dict[object, AttemptT] = {}
    for number, attempt in enumerate(attempts):
        key = (attempt.execution_id, attempt.activity_id) if attempt.activity_id else number
        known = kept.get(key)
        if known is None:
            kept[key] = attempt
        elif attempt.attempt >= known.attempt:
            del kept[key]
            kept[key] = attempt
    return list(kept.values())
