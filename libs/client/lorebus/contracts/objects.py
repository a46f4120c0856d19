"""JSON objects of the caller's, which come back as they went in: checked for what JSON and Postgres cannot hold."""

from math import isfinite
from typing import Annotated, Any, cast

from pydantic import AfterValidator

DEPTH_MAX = 32
"""Deeper than anything that somebody wrote, far from where recursion ends."""


def make_storable(value: Any, depth: int = 0) -> Any:
    """The value with what no text column holds replaced, in keys too.

    Raises ValueError, which names none of the content, for a number that is not finite and for too deep a nesting.
    """
    if isinstance(value, str):
        return _storable(value)
    if isinstance(value, float) and not isfinite(value):
        raise ValueError("holds a number that is not finite")
    if isinstance(value, list | dict) and depth >= DEPTH_MAX:
        raise ValueError(f"is nested deeper than {DEPTH_MAX}")
    if isinstance(value, list):
        return [make_storable(item, depth + 1) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {_storable(key): make_storable(field, depth + 1) for key, field in fields.items()}
    return value


def _storable(text: str) -> str:
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return whole.replace("\x00", "\N{REPLACEMENT CHARACTER}")


JsonObject = Annotated[dict[str, Any], AfterValidator(make_storable)]
