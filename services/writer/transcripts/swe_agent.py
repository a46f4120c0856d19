"""Trajectories of SWE-agent: one JSON document, in whose list `trajectory` each step is an action and what followed.

Steps carry no exit code, so a command counts as failed only where its output begins as a failure does. Which file an
`edit` writes stands in no action; it is the file that is open.
"""

import re
from collections.abc import Iterator

from services.writer.transcripts.documents import read_json_items
from services.writer.transcripts.records import AssistantText, Format, Group, ToolCall, ToolResult
from services.writer.transcripts.shapes import JsonObject, as_object, as_text

SHELL = "bash"
EDITOR = "str_replace_editor"
"""Its first argument says what it does."""
WRITERS = frozenset({"edit", "insert", "create", f"{EDITOR} create", f"{EDITOR} str_replace", f"{EDITOR} insert"})
OTHERS = frozenset(
    {"open", "goto", "scroll_up", "scroll_down", "search_file", "search_dir", "find_file", "submit", f"{EDITOR} view"}
)
UNNAMED_FILE = frozenset({"edit", "insert", "create"})

FAILED_TOOL = re.compile(
    r"\s*(?:Your proposed edit has introduced new syntax error|Your edit was not applied|Text not found"
    r"|No replacement was performed|No file open|File .* not found|The path .* does not exist"
    r"|Error:|ERROR:|Usage:|Invalid )"
)
FAILED_COMMAND = re.compile(
    r"\s*(?:Traceback \(most recent call last\):|(?:/\w+)*/?(?:ba|da|z)?sh: .*"
    r"|(?:/\w+)*/?python[\d.]*: can't open file|Your bash command contained syntax errors"
    r"|The command .* was cancelled|Interactive operation|EXECUTION TIMED OUT|COMMAND FAILED)"
)
# The bound keeps the search from going over a long line again and again.
_SHOWN_FILE = re.compile(r"\[File: (.{1,400}) \(\d{1,9} lines total\)\]")


def read(chunks: Iterator[bytes]) -> Iterator[Group]:
    for number, step in enumerate(read_json_items(chunks, "trajectory")):
        text = AssistantText(as_text(step.get("thought")) or as_text(step.get("response")))
        action = as_text(step.get("action")).strip()
        call = _build_call(action, step, call_id=str(number))
        result = ToolResult(as_text(step.get("observation")), call_id=str(number))
        yield [text, call, result] if action else [text]


def _build_call(action: str, step: JsonObject, call_id: str) -> ToolCall:
    words = action.split(maxsplit=3)
    tool = " ".join(words[:2]) if words[:1] == [EDITOR] else "".join(words[:1])
    if tool not in WRITERS | OTHERS:
        return ToolCall(SHELL, action, call_id=call_id)
    named = words[len(tool.split()) :][:1]
    files = [_find_open_file(step)] if tool in UNNAMED_FILE else [name.strip("\"'") for name in named]
    return ToolCall(tool, action, tuple(file for file in files if file), call_id)


def _find_open_file(step: JsonObject) -> str:
    """The file that is open after the step. A state in JSON text is older, and tells of the time before it."""
    name = as_text(as_object(step.get("state")).get("open_file"))
    shown = _SHOWN_FILE.search(as_text(step.get("observation")))
    return name if name not in {"", "n/a"} else shown.group(1) if shown else ""


FORMAT = Format(
    read,
    shell_tools=frozenset({SHELL}),
    writing_tools=WRITERS,
    failure_openings={SHELL: FAILED_COMMAND, **dict.fromkeys(WRITERS | OTHERS, FAILED_TOOL)},
)
