"""Reading values of a foreign document: each as what it should be, or an empty one of that kind."""

import json
from typing import cast

JsonObject = dict[str, object]

_FILE_KEYS = ("file_path", "path", "filename", "file_name", "file")


def as_object(value: object) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def find_int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def find_id(value: object) -> str | None:
    """An id as text; a number is one too."""
    return str(value) if isinstance(value, int | str) and value != "" else None


def parse_json(text: str) -> object:
    """The value, or None for what is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def render_json(value: object) -> str:
    """The JSON, or nothing for what is nested too deep to be worth reading."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return ""


def join_texts(content: object) -> str:
    """A message's content: a text, or blocks some of which hold text."""
    blocks = [as_object(block) for block in as_list(content)]
    return as_text(content) or "\n".join(text for block in blocks if (text := as_text(block.get("text"))))


def find_files(arguments: JsonObject) -> tuple[str, ...]:
    """The file that a call's arguments name."""
    return tuple(name for key in _FILE_KEYS if (name := as_text(arguments.get(key))))[:1]
