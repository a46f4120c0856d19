"""The strings inside a JSON value, wherever they stand."""

from collections.abc import Callable, Iterator
from typing import Any, cast


def find_strings(value: Any) -> Iterator[str]:
    """All of them in order, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from find_strings(item)
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield key
            yield from find_strings(item)


def map_strings(value: Any, change: Callable[[str], str]) -> Any:
    """The value with each of its strings changed; keys stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [map_strings(item, change) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: map_strings(item, change) for key, item in cast("dict[str, Any]", value).items()}
    return value
