"""JSON out of what a model said: code fences, thoughts and courtesies around it do not matter."""

import json
from collections.abc import Iterator
from typing import Any, cast

OBJECTS_MAX = 20
"""So many opening braces are tried as the start of an answer."""


def find_objects(text: str) -> Iterator[dict[str, Any]]:
    """Every object that begins in the text, in order."""
    decoder = json.JSONDecoder()
    position = 0
    for _ in range(OBJECTS_MAX):
        if (position := text.find("{", position)) < 0:
            return
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            position += 1
        else:
            yield cast("dict[str, Any]", value)
