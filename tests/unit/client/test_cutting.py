"""Cutting a transcript into parts: nothing is lost, no part is too large, and each time the same."""

import gzip
import random
from collections.abc import Iterator
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from lorebus.contracts.evidence import PART_BYTES_MAX
from lorebus.cutting import UNPACKED_BYTES_MAX, cut

SMALL = {"unpacked_max": 64, "packed_max": 48}
"""Bounds that examples of a few hundred bytes reach."""


@given(st.lists(st.binary(max_size=90) | st.sampled_from([b"{}\n", b"\n", b"a" * 200]), max_size=8))
@settings(deadline=None)
def test_the_parts_joined_are_the_original_and_each_keeps_the_bounds(chunks: list[bytes]):
    parts = list(cut(chunks, **SMALL))
    unpacked = [gzip.decompress(part) for part in parts]
    assert b"".join(unpacked) == b"".join(chunks)
    assert all(len(part) <= SMALL["packed_max"] for part in parts)
    assert all(0 < len(content) <= SMALL["unpacked_max"] for content in unpacked)


@given(st.binary(max_size=400), st.integers(1, 50))
@settings(deadline=None)
def test_the_same_bytes_give_the_same_parts_however_they_come_in(content: bytes, size: int):
    chunks = [content[start : start + size] for start in range(0, len(content), size)]
    assert list(cut(chunks, **SMALL)) == list(cut([content], **SMALL))


def test_parts_end_at_line_ends():
    lines = b"".join(b'{"n": %d, "said": "something"}\n' % number for number in range(200_000))
    contents = [gzip.decompress(part) for part in cut([lines])]
    assert len(contents) == len(lines) // UNPACKED_BYTES_MAX + 1
    assert b"".join(contents) == lines
    assert all(content.endswith(b"}\n") and content.startswith(b"{") for content in contents)


def test_what_does_not_pack_is_cut_smaller():
    noise = random.Random(7).randbytes(3 * 1024 * 1024)
    parts = list(cut([noise]))
    assert all(len(part) <= PART_BYTES_MAX for part in parts)
    assert b"".join(map(gzip.decompress, parts)) == noise


def test_nothing_gives_no_part():
    assert list(cut([])) == []
    assert list(cut([b"", b""])) == []


def test_parts_are_made_while_reading():
    """A file is never held whole: the first part is there before the second chunk that follows it is asked for."""
    asked: list[int] = []

    def chunks() -> Iterator[bytes]:
        for number in range(40):
            asked.append(number)
            yield b"line\n" * (UNPACKED_BYTES_MAX // 20)

    seen = [len(asked) for _ in cut(chunks())]
    assert seen[0] < 6
    assert max(later - earlier for earlier, later in pairwise(seen)) < 6
