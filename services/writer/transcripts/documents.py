"""From chunks of bytes to lines and JSON values, one at a time; what cannot be read is left out."""

from collections.abc import Iterator
from typing import cast

import ijson

from services.writer.transcripts.shapes import JsonObject, as_object, parse_json


def read_lines(chunks: Iterator[bytes]) -> Iterator[str]:
    rest: list[bytes] = []
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        rest.append(first)
        for line in others:
            yield _decode(rest)
            rest = [line]
    yield _decode(rest)


def _decode(pieces: list[bytes]) -> str:
    return b"".join(pieces).decode("utf-8", "replace").removesuffix("\r")


def read_json_lines(chunks: Iterator[bytes]) -> Iterator[JsonObject]:
    """The objects of a JSONL document."""
    return (found for line in read_lines(chunks) if (found := as_object(parse_json(line))))


def read_json_items(chunks: Iterator[bytes], key: str | None = None) -> Iterator[JsonObject]:
    """The objects of one list, without holding its document: the list under that key, or the document itself."""
    try:
        yield from _build_items(_located(chunks), key)
    except (ijson.JSONError, ValueError):
        return


def _located(chunks: Iterator[bytes]) -> Iterator[tuple[int, str, object]]:
    """What the parser meets, each with the depth that it stands at."""
    # Not ijson.items: it keeps a path for each level, which takes the memory's end on a document of brackets alone.
    events = cast("Iterator[tuple[str, object]]", ijson.basic_parse(ijson.from_iter(chunks), use_float=True))
    depth = 0
    for event, value in events:
        depth -= event.startswith("end_")
        yield depth, event, value
        depth += event.startswith("start_")


def _build_items(located: Iterator[tuple[int, str, object]], key: str | None) -> Iterator[JsonObject]:
    items_depth = 2 if key else 1
    is_in_list = key is None
    builder: ijson.ObjectBuilder | None = None
    for depth, event, value in located:
        if key and (depth, event) == (1, "map_key"):
            is_in_list = value == key
        if is_in_list and (depth, event) == (items_depth, "start_map"):
            builder = ijson.ObjectBuilder()
        if builder:
            builder.event(event, value)
        if builder and (depth, event) == (items_depth, "end_map"):
            yield as_object(cast("object", builder.value))
            builder = None
