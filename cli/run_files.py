"""Run events from files: `run.finished` as JSON, where a transcript part may name a file beside it.

    {"path": "session.jsonl"}

is read relative to the run file or to its parent folder, never from outside of these, and carried inside
the message. What does not fit the message is left out, newest transcripts kept first.
"""

import base64
import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from lorebus import InvalidMessage, RunFinished
from lorebus.contracts.envelope import build_message, parse_object
from lorebus.contracts.runs import Transcript
from lorebus.publishing import RUN_BYTES_MAX, measure_run

TRANSCRIPT_BYTES_MAX = 32 * 1024 * 1024
"""A larger file does not fit a message however well it packs."""


@dataclass(frozen=True, slots=True)
class RunFile:
    """A run as it will be published. `left_out`: transcripts that stayed behind, each with the reason."""

    run: RunFinished
    left_out: tuple[str, ...] = ()


def read_run_file(path: Path, tenant: str) -> RunFile:
    """Raises InvalidMessage, whose text says what is wrong with the file."""
    try:
        fields = parse_object(path.read_bytes())
    except IsADirectoryError:
        raise InvalidMessage("it is a folder: name its files, such as runs/*.json") from None
    except OSError as error:
        raise InvalidMessage(f"it cannot be read: {error.strerror}") from error
    given = fields.pop("transcripts", None)
    run = build_message(RunFinished, fields)
    packed, left_out = _pack_transcripts(path, cast("list[Any]", given) if isinstance(given, list) else [])
    kept, too_large = _choose(run, packed, tenant)
    return RunFile(run.model_copy(update={"transcripts": kept}), (*left_out, *too_large))


def _pack_transcripts(path: Path, given: list[Any]) -> tuple[list[Transcript], list[str]]:
    packed: list[Transcript] = []
    left_out: list[str] = []
    for place, transcript in enumerate(given, start=1):
        try:
            packed.append(_pack_transcript(path, transcript))
        except InvalidMessage as error:
            left_out.append(f"transcript {place}: {error}")
    return packed, left_out


def _pack_transcript(path: Path, given: Any) -> Transcript:
    if not isinstance(given, dict):
        raise InvalidMessage("not an object")
    fields = cast("dict[str, Any]", given)
    parts = fields.get("parts")
    carried = [_carry(path, part) for part in cast("list[Any]", parts)] if isinstance(parts, list) else []
    return build_message(Transcript, {**fields, "parts": carried})


def _carry(path: Path, part: Any) -> Any:
    """The part with the bytes of the file that it names."""
    if not isinstance(part, dict) or "path" not in part:
        return cast("Any", part)
    content = _read_beside(path, str(cast("dict[str, Any]", part)["path"]))
    # Without a time in it, so that the same file gives the same message whenever it is published.
    data = gzip.compress(content, mtime=0)
    return {
        "sha256": hashlib.sha256(data).hexdigest(),
        "encoding": "gzip",
        "data": base64.b64encode(data).decode(),
    }


def _read_beside(path: Path, name: str) -> bytes:
    folder = path.resolve().parent
    for base in (folder, folder.parent):
        found = (base / name).resolve()
        # A run file from elsewhere must not carry away what it was not given.
        if found.is_relative_to(folder.parent) and found.is_file():
            return _read_bounded(found, name)
    raise InvalidMessage(f"no file {name} beside the run file or in its parent folder")


def _read_bounded(found: Path, name: str) -> bytes:
    try:
        if found.stat().st_size > TRANSCRIPT_BYTES_MAX:
            raise InvalidMessage(f"{name} is larger than {TRANSCRIPT_BYTES_MAX // 1024**2} MiB")
        return found.read_bytes()
    except OSError as error:
        raise InvalidMessage(f"{name} cannot be read: {error.strerror}") from error


def _choose(run: RunFinished, packed: list[Transcript], tenant: str) -> tuple[list[Transcript], list[str]]:
    """Those that fit, newest first; returned in the order given."""
    left_bytes = RUN_BYTES_MAX - measure_run(run, tenant)
    kept: set[int] = set()
    for place in sorted(range(len(packed)), key=lambda place: _age_key(packed[place], place), reverse=True):
        size = len(packed[place].model_dump_json(exclude_none=True).encode()) + len(",")
        if size <= left_bytes:
            kept.add(place)
            left_bytes -= size
    left_out = [
        f"transcript {transcript.id}: does not fit the {RUN_BYTES_MAX // 1024} KiB of a message"
        for place, transcript in enumerate(packed)
        if place not in kept
    ]
    return [packed[place] for place in sorted(kept)], left_out


def _age_key(transcript: Transcript, place: int) -> tuple[float, int, int]:
    closed = transcript.closed_at.timestamp() if transcript.closed_at else 0.0
    return closed, transcript.attempt, place
