"""Rollouts of Codex: a line each item, calls and their outputs apart, an exit code in the output's metadata or head.

A patch is a file write under whatever tool it comes: of its own, or as a shell command that Codex takes over.
"""

import re
from collections.abc import Iterator

from services.writer.transcripts.documents import read_json_lines
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
    as_list,
    as_object,
    as_text,
    find_files,
    find_id,
    find_int,
    join_texts,
    parse_json,
    render_json,
)

SHELLS = frozenset({"shell", "shell_command", "local_shell", "exec_command", "container.exec"})
PATCH = "apply_patch"
SHELL_OPTIONS = re.compile(r"-\w*c")

_PATCHED_FILE = re.compile(r"^\*\*\* (?:Add|Update) File: (.+)$", re.MULTILINE)
_HEADER_LINES = r"(?:[A-Z][^\n]*\n){0,6}"
# Cut off: its other lines hold times and ids, which differ between equal failures.
_HEADER = re.compile(
    rf"{_HEADER_LINES}?(?:Process exited with code|Exit code:) (?P<exit_code>-?\d{{1,9}})\n{_HEADER_LINES}?Output:\n"
)


def read(chunks: Iterator[bytes]) -> Iterator[Group]:
    for line in read_json_lines(chunks):
        item = as_object(line.get("payload")) if line.get("type") == "response_item" else line
        yield list(_records(item))


def _records(item: JsonObject) -> Iterator[Record]:
    kind = as_text(item.get("type"))
    if kind == "message" and item.get("role") == "assistant":
        yield AssistantText(join_texts(item.get("content")))
    elif kind in {"function_call", "custom_tool_call"}:
        yield _build_call(as_text(item.get("name")), item.get("arguments") or item.get("input"), item)
    elif kind == "local_shell_call":
        yield _build_call("local_shell", item.get("action"), item)
    elif kind.endswith("_call_output"):
        yield _build_result(item.get("output"), find_id(item.get("call_id")))


def _build_call(tool: str, given: object, item: JsonObject) -> ToolCall:
    call_id = find_id(item.get("call_id")) or find_id(item.get("id"))
    arguments = as_object(given) or as_object(parse_json(as_text(given)))
    command = _command(arguments) if tool in SHELLS else ""
    if tool == PATCH or command.startswith(PATCH):
        patch = command or as_text(arguments.get("input")) or as_text(given)
        return ToolCall(PATCH, patch, tuple(dict.fromkeys(map(str.strip, _PATCHED_FILE.findall(patch)))), call_id)
    return ToolCall(tool, command or as_text(given) or render_json(given), find_files(arguments), call_id)


def _command(arguments: JsonObject) -> str:
    given = arguments.get("cmd") or arguments.get("command")
    words = [as_text(word) for word in as_list(given)]
    # `bash -lc "make test"` is the command `make test`.
    is_script = len(words) == 3 and SHELL_OPTIONS.fullmatch(words[1])
    return as_text(given) or (words[2] if is_script else " ".join(words))


def _build_result(output: object, call_id: str | None) -> ToolResult:
    text = as_text(output) or join_texts(output)
    fields = as_object(output) or as_object(parse_json(text))
    text = next((as_text(fields[key]) for key in ("output", "content") if key in fields), text)
    exit_code = find_int(as_object(fields.get("metadata")).get("exit_code"))
    if told := _HEADER.match(text):
        exit_code, text = int(told.group("exit_code")), text[told.end() :]
    if fields.get("success") is False and not exit_code:
        return ToolResult(text, call_id=call_id, is_error=True)
    return build_command_result(text, exit_code, call_id)


FORMAT = Format(
    read,
    shell_tools=SHELLS,
    writing_tools=frozenset({PATCH}),
    failure_openings={
        **dict.fromkeys(SHELLS, re.compile(r"(?:exec_command|shell|exec|execution) (?:failed|error)|failed to parse")),
        PATCH: re.compile(r"apply_patch verification failed|Failed to |Invalid patch|failed to parse"),
    },
)
