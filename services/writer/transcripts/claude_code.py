"""Sessions of Claude Code: a line each message, results in the user message that follows the call.

A result that a hook refused is marked as an error but has no `Exit code` line, so both signs count.
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
    render_json,
)

SHELL = "Bash"


def read(chunks: Iterator[bytes]) -> Iterator[Group]:
    for line in read_json_lines(chunks):
        message = as_object(line.get("message"))
        content = message.get("content")
        # What a sub-agent says last is not what the session says last.
        speaks = message.get("role") == "assistant" and line.get("isSidechain") is not True
        texts: list[Record] = [AssistantText(join_texts(content))] if speaks else []
        yield [*texts, *(record for block in as_list(content) for record in _records(as_object(block)))]


def _records(block: JsonObject) -> Iterator[Record]:
    if block.get("type") == "tool_use":
        yield _build_call(block)
    elif block.get("type") == "tool_result":
        is_error = block.get("is_error") is True
        text = join_texts(block.get("content"))
        yield ToolResult(text, call_id=find_id(block.get("tool_use_id")), is_error=is_error)


def _build_call(block: JsonObject) -> ToolCall:
    tool, arguments = as_text(block.get("name")), as_object(block.get("input"))
    command = as_text(arguments.get("command")) if tool == SHELL else ""
    return ToolCall(tool, command or render_json(arguments), find_files(arguments), find_id(block.get("id")))


FORMAT = Format(
    read,
    shell_tools=frozenset({SHELL}),
    writing_tools=frozenset({"Edit", "Write", "MultiEdit"}),
    failure_openings={SHELL: re.compile(r"Exit code (?!0\s*$)\d+\s*$", re.MULTILINE)},
)
