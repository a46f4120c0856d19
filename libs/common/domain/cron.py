"""The five fields of a cron line, checked when it is set: a schedule that means nothing would only never be due."""

CHARS_MAX = 100

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
