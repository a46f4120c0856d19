"""What stands out in sessions: tools that failed, commands that failed, files written again and again, last words.

Records are folded in one at a time and dropped. Of each kind only the latest distinct findings are held, cleaned and
then cut to what an entry can be at most, so that a long session costs no more memory than a short one.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from services.writer.transcripts.excerpts import keep_head, keep_tail
from services.writer.transcripts.pairing import Pairing
from services.writer.transcripts.records import AssistantText, Format, Group, ToolCall, ToolResult

Clean = Callable[[str], str]
"""Masks credentials and what else must not be kept. It sees each text whole: of half a credential it could not tell."""

KIND_ENTRIES_MAX = 5
KIND_CHARS_MAX = 4_000 // 4
WRITES_MIN = 3
PATH_CHARS_MAX = 160
"""Leaves room in the smallest entry for the count."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was done, and what came of it; the latter may be empty."""

    deed: str
    outcome: str = ""


class Latest:
    """The latest distinct findings of a kind, each with the transcripts that it stands in."""

    def __init__(self) -> None:
        self._transcripts: dict[Finding, tuple[str, ...]] = {}

    def add(self, finding: Finding, transcript_ids: Iterable[str]) -> None:
        known = self._transcripts.pop(finding, ())
        self._transcripts[finding] = tuple(dict.fromkeys((*known, *transcript_ids)))
        if len(self._transcripts) > KIND_ENTRIES_MAX:
            del self._transcripts[next(iter(self._transcripts))]

    def add_all(self, other: "Latest") -> None:
        for finding, transcript_ids in other.items():
            self.add(finding, transcript_ids)

    def items(self) -> list[tuple[Finding, tuple[str, ...]]]:
        """Oldest first."""
        return list(self._transcripts.items())


class Session:
    """One transcript's findings."""

    def __init__(self, transcript_id: str, form: Format, clean: Clean) -> None:
        self.transcript_id = transcript_id
        self.failed_tools = Latest()
        self.failed_commands = Latest()
        self.writes: dict[str, int] = {}
        """By file, in the order of their last writes."""
        self._form = form
        self._clean = clean
        self._pairing = Pairing()
        self._last_text = ""

    def add(self, group: Group) -> None:
        for record in group:
            if isinstance(record, AssistantText) and record.text.strip():
                self._last_text = record.text
        for call, result in self._pairing.add(group):
            self._judge(call, result)

    def render_note(self) -> str:
        """The head of the last assistant text; empty when there is none."""
        return keep_head(self._clean(self._last_text).strip(), KIND_CHARS_MAX)

    def _judge(self, call: ToolCall, result: ToolResult) -> None:
        is_failure = self._form.is_failure(call, result)
        if is_failure and call.tool in self._form.shell_tools:
            self.failed_commands.add(self._failed_command(call, result), [self.transcript_id])
        elif is_failure:
            self.failed_tools.add(self._failed_tool(call, result), [self.transcript_id])
        elif call.tool in self._form.writing_tools:
            for file in call.files:
                self.writes[file] = self.writes.pop(file, 0) + 1

    def _failed_command(self, call: ToolCall, result: ToolResult) -> Finding:
        command = keep_head(self._clean(call.input).strip(), KIND_CHARS_MAX)
        return Finding(command, keep_tail(self._clean(result.text).strip(), KIND_CHARS_MAX))

    def _failed_tool(self, call: ToolCall, result: ToolResult) -> Finding:
        given = ", ".join(call.files) or call.input
        used = keep_head(self._clean(f"{call.tool} {given}").strip(), KIND_CHARS_MAX)
        return Finding(used, keep_head(self._clean(result.text).strip(), KIND_CHARS_MAX))


class Findings:
    """What the sessions of a run found together. A file counts over all of them."""

    def __init__(self, clean: Clean) -> None:
        self.failed_tools = Latest()
        self.failed_commands = Latest()
        self.final_notes = Latest()
        self._writes: dict[str, tuple[int, tuple[str, ...]]] = {}
        self._clean = clean

    @property
    def churned_files(self) -> Latest:
        churned = Latest()
        for file, (count, transcript_ids) in self._writes.items():
            if count >= WRITES_MIN:
                path = keep_tail(self._clean(file), PATH_CHARS_MAX)
                churned.add(Finding(path, f"written {count} times"), transcript_ids)
        return churned

    def add(self, session: Session) -> None:
        """A session's findings, after those of all earlier ones."""
        self.failed_tools.add_all(session.failed_tools)
        self.failed_commands.add_all(session.failed_commands)
        for file, count in session.writes.items():
            known, transcript_ids = self._writes.pop(file, (0, ()))
            self._writes[file] = known + count, (*transcript_ids, session.transcript_id)
        if note := session.render_note():
            self.final_notes.add(Finding(note), [session.transcript_id])
