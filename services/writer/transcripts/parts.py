"""Parts of transcripts, as carried and as unpacked.

A part is checked as it was carried before anything unpacks it, and unpacked no further than what is left to read, so
it can neither be swapped nor blow up.
"""

import base64
import gzip
import hashlib
import io
import zlib
from collections.abc import Callable, Iterator, Sequence

from lorebus.contracts.runs import TranscriptPart
from lorebus.errors import LorebusError

from services.writer.transcripts.deadline import Deadline

READ_BYTES_MAX = 8 * 1024 * 1024
"""Over all transcripts of a run, unpacked."""
CHUNK_BYTES = 64 * 1024

Fetch = Callable[[str], bytes]
"""The part that was put under a reference, as carried. Raises LookupError when there is none."""


class PartUnreadable(LorebusError):
    """A part is missing, is not what its checksum says, or cannot be unpacked."""


class PartReader:
    """Parts as chunks of what they hold, until the part that would take the total past the bound."""

    def __init__(self, fetch: Fetch, deadline: Deadline) -> None:
        self._fetch = fetch
        self._deadline = deadline
        self._bytes_left = READ_BYTES_MAX
        self._has_stopped = False

    def read(self, parts: Sequence[TranscriptPart]) -> Iterator[bytes]:
        """Errors: PartUnreadable, DigestTimedOut, and what `fetch` raises but for LookupError."""
        for part in parts:
            if self._has_stopped:
                return
            self._deadline.check()
            content = unpack(load(part, self._fetch), part.encoding, self._bytes_left)
            if content is None:
                self._has_stopped = True
                return
            self._bytes_left -= len(content)
            yield from self._chunks(content)

    def _chunks(self, content: bytes) -> Iterator[bytes]:
        for start in range(0, len(content), CHUNK_BYTES):
            self._deadline.check()
            yield content[start : start + CHUNK_BYTES]


def load(part: TranscriptPart, fetch: Fetch) -> bytes:
    """The bytes as carried, which are what the checksum says. Errors: PartUnreadable."""
    carried = _decode(part.data) if part.data is not None else _fetch(part.ref, fetch)
    # A part without a checksum could be anything.
    if hashlib.sha256(carried).hexdigest() != (part.sha256 or "").lower():
        raise PartUnreadable("a part of a transcript is not what its checksum says")
    return carried


def _decode(data: str) -> bytes:
    try:
        return base64.b64decode(data)
    except ValueError as error:
        raise PartUnreadable("a part of a transcript is not base64") from error


def _fetch(ref: str | None, fetch: Fetch) -> bytes:
    try:
        return fetch(ref or "")
    except LookupError as error:
        raise PartUnreadable("a part of a transcript is missing") from error


def unpack(carried: bytes, encoding: str, bytes_max: int) -> bytes | None:
    """The content, or None when it is longer than allowed. Errors: PartUnreadable."""
    content = _inflate(carried, bytes_max) if encoding == "gzip" else carried
    return content if len(content) <= bytes_max else None


def _inflate(carried: bytes, bytes_max: int) -> bytes:
    """At most one byte more than allowed."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(carried)) as packed:
            return packed.read(bytes_max + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise PartUnreadable("a part of a transcript cannot be unpacked") from error
