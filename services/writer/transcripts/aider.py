"""Chat histories of aider: markdown, where `#### ` is the user, `> ` is aider itself and everything else the model.

No exit codes are kept. Only `/test` tells a failure, since it adds its output to the chat for no other reason; of
`/run` the user is asked, whatever the exit code was.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import count, groupby

from services.writer.transcripts.documents import read_lines
from services.writer.transcripts.records import AssistantText, Format, Group, Record, ToolCall, ToolResult

USER, OUTPUT, SESSION, PROSE = "#### ", ">", "# aider chat started at ", ""
EDIT = "edit"
SHELLS = frozenset({"/run", "/test"})

_APPLIED = re.compile(r"^Applied edit to (.+)$", re.MULTILINE)
_REFUSED = re.compile(
    r"^(?:The LLM did not conform to the edit format|# \d+ SEARCH/REPLACE blocks? failed to match)", re.MULTILINE
)
_ADDED = re.compile(r"^Added \d+ lines? of output to the chat\.", re.MULTILINE)


def read(chunks: Iterator[bytes]) -> Iterator[Group]:
    command: tuple[str, str] | None = None
    call_ids = map(str, count())
    for opening, lines in groupby(read_lines(chunks), key=_opening):
        text = "\n".join(line.removeprefix(opening).strip() for line in lines).strip()
        if opening == USER:
            command = _find_command(text)
        elif opening == OUTPUT:
            yield [record for pair in _pairs(text, command, call_ids) for record in pair]
            command = None
        elif opening == PROSE and text:
            command = None
            yield [AssistantText(text)]


def _opening(line: str) -> str:
    return next(opening for opening in (USER, OUTPUT, SESSION, PROSE) if line.startswith(opening))


def _find_command(text: str) -> tuple[str, str] | None:
    """Tool and command, where the user ran one; `!` is short for `/run `."""
    tool, _, command = (f"/run {text[1:]}" if text.startswith("!") else text).partition(" ")
    return (tool, command) if tool in SHELLS else None


def _pairs(text: str, command: tuple[str, str] | None, call_ids: Iterator[str]) -> Iterable[tuple[Record, Record]]:
    if command:
        tool, line = command
        call_id = next(call_ids)
        is_error = tool == "/test" and bool(_ADDED.search(text))
        yield ToolCall(tool, line, call_id=call_id), ToolResult(text, call_id=call_id, is_error=is_error)
        return
    if refused := _REFUSED.search(text):
        call_id = next(call_ids)
        yield ToolCall(EDIT, "", call_id=call_id), ToolResult(text[refused.start() :], call_id=call_id, is_error=True)
    for file in _APPLIED.findall(text):
        call_id = next(call_ids)
        yield ToolCall(EDIT, file, (file,), call_id), ToolResult("", call_id=call_id)


FORMAT = Format(
    read,
    shell_tools=SHELLS,
    writing_tools=frozenset({EDIT}),
    failure_openings=dict.fromkeys(SHELLS, re.compile("Error running command:")),
)
