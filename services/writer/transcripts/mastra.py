"""Model calls of a Mastra agent: a line each call, whose request repeats the conversation so far.

Found in the records are the messages of the AI SDK, Anthropic, OpenAI and Google, at whatever depth: what differs
between them are the names of the fields. What a tool returned is not searched for further calls.
"""

import re
from collections.abc import Iterator

from services.writer.transcripts.documents import read_json_lines
from services.writer.transcripts.records import AssistantText, Format, Group, Record, ToolCall, ToolResult
from services.writer.transcripts.shapes import (
    JsonObject,
    as_list,
    as_object,
    as_text,
    find_files,
    find_id,
    join_texts,
    parse_json,
    render_json,
)

SHELL = "bash"
CALLS = frozenset({"tool-call", "tool_use"})
RESULTS = frozenset({"tool-result", "tool_result", "tool-error"})
SPEAKERS = frozenset({"assistant", "model"})
WRAPPERS = ("value", "output", "result", "content", "listing", "response", "error")
"""Keys under which a tool's text stands, from the outside inwards."""
WRAPPED_DEPTH_MAX = 6


def read(chunks: Iterator[bytes]) -> Iterator[Group]:
    for line in read_json_lines(chunks):
        yield list(_walk(line))


def _walk(document: JsonObject) -> Iterator[Record]:
    # A stack in place of recursion: foreign documents may be nested deeper than Python calls.
    waiting: list[object] = [document]
    while waiting:
        node = waiting.pop()
        found = _find_records(as_object(node))
        yield from found
        if not any(isinstance(record, ToolCall | ToolResult) for record in found):
            inner = as_list(node) or list(as_object(node).values())
            waiting += [one for one in reversed(inner) if one and isinstance(one, dict | list)]


def _find_records(node: JsonObject) -> list[Record]:
    fields = node | as_object(node.get("payload"))
    kind = as_text(fields.get("type"))
    if kind in CALLS:
        return [_build_call(fields)]
    if kind in RESULTS or (fields.get("role") == "tool" and find_id(fields.get("tool_call_id"))):
        return [_build_result(fields)]
    if as_text(fields.get("role")) in SPEAKERS:
        return [AssistantText(join_texts(fields.get("content") or fields.get("parts")))]
    return _find_nested(fields)


def _find_nested(fields: JsonObject) -> list[Record]:
    """Calls and results that are the only member of what names them."""
    if invocation := as_object(fields.get("toolInvocation")):
        result: list[Record] = [_build_result(invocation)] if "result" in invocation else []
        return [_build_call(invocation), *result]
    if call := as_object(fields.get("functionCall")):
        return [_build_call(call)]
    if answer := as_object(fields.get("functionResponse")):
        return [_build_result(answer)]
    if function := as_object(fields.get("function")):
        return [_build_call({**function, "id": fields.get("id")})] if "arguments" in function else []
    return []


def _build_call(fields: JsonObject) -> ToolCall:
    tool = _tool(fields)
    given = fields.get("input") or fields.get("args") or fields.get("arguments")
    arguments = as_object(given) or as_object(parse_json(as_text(given)))
    command = as_text(arguments.get("command")) if tool == SHELL else ""
    return ToolCall(tool, command or render_json(arguments), find_files(arguments), _find_call_id(fields, tool))


def _build_result(fields: JsonObject) -> ToolResult:
    tool = _tool(fields)
    output = next((fields[key] for key in ("output", "result", "content", "response", "error") if key in fields), "")
    kinds = (as_text(fields.get("type")), as_text(as_object(output).get("type")))
    is_error = fields.get("isError") is True or fields.get("is_error") is True
    is_error = is_error or any(kind in {"tool-error", "error-text", "error-json"} for kind in kinds)
    return ToolResult(_unwrap(output), tool, _find_call_id(fields, tool), is_error)


def _tool(fields: JsonObject) -> str:
    return as_text(fields.get("toolName")) or as_text(fields.get("name"))


def _find_call_id(fields: JsonObject, tool: str) -> str | None:
    ids = (find_id(fields.get(key)) for key in ("toolCallId", "tool_use_id", "tool_call_id", "id"))
    found = next((one for one in ids if one), None)
    # A Google call is keyed by its tool's name, which is no id.
    return None if found == tool else found


def _unwrap(output: object) -> str:
    """The text that a tool returned, out of the objects that it was wrapped in on its way.

    Only the outermost text may be JSON of the way's own; one further in can be a file that the tool read.
    """
    fields = as_object(parse_json(as_text(output) or join_texts(output))) or as_object(output)
    for _ in range(WRAPPED_DEPTH_MAX):
        inner = next((fields[key] for key in WRAPPERS if key in fields), None)
        if inner is None:
            break
        output, fields = inner, as_object(inner)
    return as_text(output) or join_texts(output) or render_json(output)


FORMAT = Format(
    read,
    shell_tools=frozenset({SHELL}),
    writing_tools=frozenset({"writeFile"}),
    failure_openings={
        SHELL: re.compile(r"Command finished \(exit code (?!0\))-?\d+\)|Command failed:"),
        **dict.fromkeys(
            ("readFile", "writeFile", "listDirectory", "listFiles"),
            re.compile(
                "Error reading file:|Error writing file:|Error listing directory:|Write blocked:|SECURITY CHECK FAILED"
            ),
        ),
    },
)
