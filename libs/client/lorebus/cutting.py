"""Cuts what a transcript holds into packed parts that `evidence.put` takes and the writer can unpack one by one.

Pure, and the same bytes give the same parts, however they come in: putting a transcript again changes nothing.
"""

import gzip
from collections.abc import Iterable, Iterator

from lorebus.contracts.evidence import PART_BYTES_MAX

UNPACKED_BYTES_MAX = 2 * 1024 * 1024


def cut(
    chunks: Iterable[bytes], *, unpacked_max: int = UNPACKED_BYTES_MAX, packed_max: int = PART_BYTES_MAX
) -> Iterator[bytes]:
    """Parts packed with gzip, of at most so many bytes unpacked and packed, cut at line ends where there are any."""
    held = bytearray()
    for chunk in chunks:
        held += chunk
        while len(held) > unpacked_max:
            yield _take_part(held, _head(held, unpacked_max), packed_max)
    while held:
        yield _take_part(held, bytes(held), packed_max)


def _take_part(held: bytearray, part: bytes, packed_max: int) -> bytes:
    """Takes the part from the start of what is held, or less of it where it does not pack well enough."""
    # A time in it would make another part of the same bytes.
    while len(packed := gzip.compress(part, mtime=0)) > packed_max:
        part = _head(part, len(part) // 2)
    del held[: len(part)]
    return packed


def _head(content: bytes | bytearray, bytes_max: int) -> bytes:
    """Up to the last line end within so many bytes; all of them where there is none."""
    line_end = content.rfind(b"\n", 0, bytes_max) + 1
    return bytes(content[: line_end or bytes_max])
