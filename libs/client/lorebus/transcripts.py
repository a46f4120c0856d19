"""Transcripts as a publisher has them, read part by part as they will be carried.

One part at a time is in memory, whatever a transcript's size.
"""

import base64
import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lorebus.contracts.evidence import PART_BYTES_MAX
from lorebus.contracts.runs import Transcript, TranscriptPart
from lorebus.cutting import cut
from lorebus.errors import LorebusError

CHUNK_BYTES = 64 * 1024


class TranscriptUnreadable(LorebusError):
    """A part of it cannot be carried; the text names the part, never what it holds."""


@dataclass(frozen=True, slots=True)
class TranscriptFiles:
    """A transcript and where its parts are: in files of this machine, or carried already."""

    transcript: Transcript
    """What it is; its own parts do not count."""
    parts: Sequence[Path | TranscriptPart]

    def with_parts(self, parts: Sequence[TranscriptPart]) -> Transcript:
        return self.transcript.model_copy(update={"parts": list(parts)})

    @property
    def age_key(self) -> tuple[float, int]:
        """The newer, the larger."""
        closed = self.transcript.closed_at
        return closed.timestamp() if closed else 0.0, self.transcript.attempt


def read_parts(parts: Sequence[Path | TranscriptPart]) -> Iterator[TranscriptPart]:
    """Parts that each fit one `evidence.put`. It blocks. Errors: TranscriptUnreadable.

    Files and parts above PART_BYTES_MAX are cut and packed anew; what was put before stays as it is.
    """
    for number, part in enumerate(parts, start=1):
        if isinstance(part, Path):
            yield from _read_file(part)
        elif part.data is None:
            yield part
        else:
            yield from _fit(part, f"part {number}")


def _read_file(path: Path) -> Iterator[TranscriptPart]:
    try:
        with path.open("rb") as file:
            yield from map(_pack, cut(_chunks(file)))
    except OSError as error:
        raise TranscriptUnreadable(f"{path.name} cannot be read: {error.strerror}") from error


def _fit(part: TranscriptPart, name: str) -> Iterator[TranscriptPart]:
    carried = _decode(part, name)
    digest = hashlib.sha256(carried).hexdigest()
    if part.sha256 is not None and part.sha256.lower() != digest:
        raise TranscriptUnreadable(f"{name} is not what its sha256 says")
    if len(carried) <= PART_BYTES_MAX:
        yield part.model_copy(update={"sha256": digest})
    else:
        yield from map(_pack, cut(_unpack(carried, part.encoding, name)))


def _decode(part: TranscriptPart, name: str) -> bytes:
    try:
        return base64.b64decode(part.data or "", validate=True)
    except ValueError as error:
        raise TranscriptUnreadable(f"{name} is not base64") from error


def _unpack(carried: bytes, encoding: str, name: str) -> Iterator[bytes]:
    if encoding != "gzip":
        yield from _chunks(io.BytesIO(carried))
        return
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(carried)) as packed:
            yield from _chunks(packed)
    except (OSError, EOFError, zlib.error) as error:
        raise TranscriptUnreadable(f"{name} cannot be unpacked") from error


def _chunks(file: io.BufferedIOBase) -> Iterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        yield chunk


def _pack(packed: bytes) -> TranscriptPart:
    digest = hashlib.sha256(packed).hexdigest()
    return TranscriptPart(sha256=digest, encoding="gzip", data=base64.b64encode(packed).decode())
