"""What every transcript comes down to, whatever agent wrote it, and what a format declares about its tools.

A reader gives one group for each record of its source. Where calls carry no ids of their own, calls and results are
paired by position inside a group, so a group must not be split and not be joined with another.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ToolCall:
    tool: str
    input: str
    """The command of a shell, else the arguments as JSON."""
    files: tuple[str, ...] = ()
    """The files it names."""
    call_id: str | None = None
    """None where the source has no id that is this call's alone."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    text: str
    tool: str = ""
    """Needed only where no id says which call is answered."""
    call_id: str | None = None
    is_error: bool = False
    """The source marks it as an error, or gives an exit code that is not zero."""


@dataclass(frozen=True, slots=True)
class AssistantText:
    text: str


Record = ToolCall | ToolResult | AssistantText
Group = Sequence[Record]
Reader = Callable[[Iterator[bytes]], Iterator[Group]]
"""Never raises for what the chunks hold: an unreadable record is left out, a cut document gives what came before."""


@dataclass(frozen=True, slots=True)
class Format:
    read: Reader
    shell_tools: frozenset[str] = frozenset()
    writing_tools: frozenset[str] = frozenset()
    failure_openings: Mapping[str, re.Pattern[str]] = field(default_factory=dict[str, re.Pattern[str]])
    """By tool: how a result begins that says of itself that it is a failure."""

    def is_failure(self, call: ToolCall, result: ToolResult) -> bool:
        opening = self.failure_openings.get(call.tool)
        return result.is_error or bool(opening and opening.match(result.text))


def build_command_result(output: str, exit_code: int | None, call_id: str | None) -> ToolResult:
    """The result of a command whose exit code the source keeps apart; None: it is not known."""
    text = f"Exit code {exit_code}\n{output}" if exit_code else output
    return ToolResult(text, call_id=call_id, is_error=bool(exit_code))
