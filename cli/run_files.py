"""Run events from files: `run.finished` as JSON, where a transcript part may name a file beside it.

    {"path": "session.jsonl"}

is found relative to the run file or to its parent folder, never outside of these, and read only while it is
published: inside the message where it fits, else ahead of it.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from lorebus import InvalidMessage, RunFinished, TranscriptFiles
from lorebus.contracts.envelope import build_message, parse_object
from lorebus.contracts.runs import Transcript, TranscriptPart

TRANSCRIPT_BYTES_MAX = 1024**3
"""More than any session says; what a service takes of it is another limit (workflow.transcriptMaxBytes)."""


@dataclass(frozen=True, slots=True)
class RunFile:
    """A run and its transcripts, to be published together. `left_out`: those that stay behind, with the reason."""

    run: RunFinished
    transcripts: tuple[TranscriptFiles, ...] = ()
    left_out: tuple[str, ...] = ()


def read_run_file(path: Path) -> RunFile:
    """Raises InvalidMessage, whose text says what is wrong with the file."""
    try:
        fields = parse_object(path.read_bytes())
    except IsADirectoryError:
        raise InvalidMessage("it is a folder: name its files, such as runs/*.json") from None
    except OSError as error:
        raise InvalidMessage(f"it cannot be read: {error.strerror}") from error
    given = fields.pop("transcripts", None)
    run = build_message(RunFinished, fields)
    found, left_out = _find_transcripts(path, cast("list[Any]", given) if isinstance(given, list) else [])
    return RunFile(run, tuple(found), tuple(left_out))


def _find_transcripts(path: Path, given: list[Any]) -> tuple[list[TranscriptFiles], list[str]]:
    found: list[TranscriptFiles] = []
    left_out: list[str] = []
    for place, transcript in enumerate(given, start=1):
        try:
            found.append(_find_transcript(path, transcript))
        except InvalidMessage as error:
            left_out.append(f"transcript {place}: {error}")
    return found, left_out


def _find_transcript(path: Path, given: Any) -> TranscriptFiles:
    if not isinstance(given, dict):
        raise InvalidMessage("not an object")
    fields = cast("dict[str, Any]", given)
    parts = fields.get("parts")
    sources = [_find_part(path, part) for part in cast("list[Any]", parts)] if isinstance(parts, list) else []
    return TranscriptFiles(build_message(Transcript, {**fields, "parts": []}), sources)


def _find_part(path: Path, part: Any) -> Path | TranscriptPart:
    if not isinstance(part, dict):
        raise InvalidMessage("a part is not an object")
    fields = cast("dict[str, Any]", part)
    return _find_beside(path, str(fields["path"])) if "path" in fields else build_message(TranscriptPart, fields)


def _find_beside(path: Path, name: str) -> Path:
    folder = path.resolve().parent
    for base in (folder, folder.parent):
        with suppress(OSError, ValueError):  # such as a name with a NUL, or one that is too long
            found = (base / name).resolve()
            # A run file from elsewhere must not carry away what it was not given.
            if found.is_relative_to(folder.parent) and found.is_file():
                return _bounded(found, name)
    raise InvalidMessage(f"no file {name} beside the run file or in its parent folder")


def _bounded(found: Path, name: str) -> Path:
    if found.stat().st_size > TRANSCRIPT_BYTES_MAX:
        raise InvalidMessage(f"{name} is larger than {TRANSCRIPT_BYTES_MAX // 1024**2} MiB")
    return found
