"""The five fields of a cron line, checked when it is set: a schedule that means nothing would only never be due.

Where both the day of the month and the day of the week are given, either is enough, as cron has it.
"""

from datetime import datetime, time, timedelta

CHARS_MAX = 100

DAYS_BACK_MAX = 3_000
"""Eight years and more: the longest that a 29th of February stays away."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NAMES = {name: number for names, first in ((_MONTHS, 1), (_DAYS, 0)) for number, name in enumerate(names, first)}

_FIELDS: tuple[tuple[int, int, tuple[str, ...]], ...] = (
    (0, 59, ()),
    (0, 23, ()),
    (1, 31, ()),
    (1, 12, _MONTHS),
    (0, 7, _DAYS),
)
"""Minute, hour, day of the month, month, day of the week (0 and 7 are Sunday): lowest, highest, names."""


def is_cron(text: str) -> bool:
    """`*`, numbers, names of months and days, `a-b`, `/step` and comma lists, in five fields."""
    fields = text.split()
    return (
        len(text) <= CHARS_MAX
        and len(fields) == len(_FIELDS)
        and all(
            _is_part(part, low, high, names)
            for field, (low, high, names) in zip(fields, _FIELDS, strict=True)
            for part in field.split(",")
        )
    )


def _is_part(part: str, low: int, high: int, names: tuple[str, ...]) -> bool:
    span, slash, step = part.partition("/")
    if slash and not 1 <= _number(step, ()) <= high:
        return False
    if span == "*":
        return True
    first, dash, last = span.partition("-")
    start = _number(first, names)
    end = _number(last, names) if dash else start
    return low <= start <= end <= high


def _number(text: str, names: tuple[str, ...]) -> int:
    """-1 for what is neither a number nor one of the names."""
    if text.lower() in names:
        return _NAMES[text.lower()]
    return int(text) if text.isascii() and text.isdigit() else -1


def find_last_slot(line: str, now: datetime) -> datetime | None:
    """The latest minute at or before `now` that a valid line names, in the zone of `now`; None where there is none."""
    fields = line.split()
    minutes, hours, days, months, weekdays = (
        _numbers(field, *limits) for field, limits in zip(fields, _FIELDS, strict=True)
    )
    enough = any if "*" not in (fields[2][0], fields[4][0]) else all
    for days_back in range(DAYS_BACK_MAX):
        day = now.date() - timedelta(days=days_back)
        if day.month in months and enough((day.day in days, day.isoweekday() % 7 in weekdays)):
            slot = _latest(hours, minutes, now.time() if days_back == 0 else time.max)
            if slot is not None:
                return datetime.combine(day, slot, now.tzinfo)
    return None


def _latest(hours: frozenset[int], minutes: frozenset[int], until: time) -> time | None:
    moments = (time(hour, minute) for hour in hours for minute in minutes)
    return max((moment for moment in moments if moment <= until), default=None)


def _numbers(field: str, low: int, high: int, names: tuple[str, ...]) -> frozenset[int]:
    found = frozenset(number for part in field.split(",") for number in _span(part, low, high, names))
    # Sunday is 0 and 7.
    return frozenset(number % 7 for number in found) if names is _DAYS else found


def _span(part: str, low: int, high: int, names: tuple[str, ...]) -> range:
    """`5/10` goes on to the end of the field, as `5-59/10`."""
    span, slash, step = part.partition("/")
    first, dash, last = span.partition("-")
    if span == "*":
        first, end = str(low), high
    elif dash:
        end = _number(last, names)
    else:
        end = high if slash else _number(first, names)
    return range(_number(first, names), end + 1, int(step) if slash else 1)
