"""Events of OpenHands, a line each or in one JSON array: actions, and observations whose `cause` is an action's id.

Older recordings have neither ids nor causes; there an observation answers the action before it.
"""

from collections.abc import Iterator
from itertools import chain

from services.writer.transcripts.documents import read_json_items, read_json_lines
from services.writer.transcripts.records import (
    AssistantText,
    Format,
    Group,
    Record,
    ToolCall,
    ToolResult,
    build_command_result,
)
from services.writer.transcripts.shapes import (
    JsonObject,
    as_object,
    as_text,
    find_files,
    find_id,
    find_int,
    render_json,
)

SHELL = "run"
SAYINGS = {"message": "content", "finish": "final_thought"}
"""Actions that say something, with the argument that holds it."""
UNKNOWN_EXIT_CODE = -1
"""The command had not ended when it was looked at."""


def read(chunks: Iterator[bytes]) -> Iterator[Group]:
    latest: Record | None = None
    for number, event in enumerate(_read_events(chunks)):
        if "observation" in event:
            yield [_build_result(event, find_id(event.get("cause")) or _find_cause(event, latest))]
        elif "action" in event:
            latest = _build_action(event, find_id(event.get("id")) or f"unnumbered {number}")
            yield [latest]


def _find_cause(event: JsonObject, latest: Record | None) -> str | None:
    """What an observation without a cause answers: the action before it, if it is of its kind."""
    if isinstance(latest, ToolCall) and as_text(event.get("observation")) in {latest.tool, "error"}:
        return latest.call_id
    return None


def _read_events(chunks: Iterator[bytes]) -> Iterator[JsonObject]:
    opening = next((chunk for chunk in chunks if chunk.strip()), b"")
    whole = chain([opening], chunks)
    is_array = opening.lstrip().startswith(b"[")
    return read_json_items(whole) if is_array else read_json_lines(whole)


def _build_action(event: JsonObject, call_id: str) -> Record:
    action, arguments = as_text(event.get("action")), as_object(event.get("args"))
    if action in SAYINGS:
        said = as_text(arguments.get(SAYINGS[action])) or as_text(event.get("message"))
        return AssistantText(said if event.get("source") != "user" else "")
    tool = "read" if arguments.get("command") == "view" else action
    command = as_text(arguments.get("command")) if tool == SHELL else ""
    return ToolCall(tool, command or render_json(arguments), find_files(arguments), call_id)


def _build_result(event: JsonObject, call_id: str | None) -> ToolResult:
    content, extras = as_text(event.get("content")), as_object(event.get("extras"))
    if event.get("observation") == SHELL:
        given = (extras.get("exit_code"), as_object(extras.get("metadata")).get("exit_code"))
        codes = [code for code in map(find_int, given) if code not in (None, UNKNOWN_EXIT_CODE)]
        return build_command_result(content, codes[0] if codes else None, call_id)
    return ToolResult(content, call_id=call_id, is_error=event.get("observation") == "error")


FORMAT = Format(read, shell_tools=frozenset({SHELL}), writing_tools=frozenset({"write", "edit"}))
