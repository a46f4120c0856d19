"""Transcripts read part by part as they will be carried."""

import base64
import gzip
import hashlib
import random
from pathlib import Path

import pytest
from lorebus.contracts.evidence import PART_BYTES_MAX
from lorebus.contracts.runs import TranscriptPart
from lorebus.transcripts import TranscriptUnreadable, read_parts

SAID = b'{"said": "hello"}\n' * 100


def carry(content: bytes, **fields: str) -> TranscriptPart:
    """As a publisher carries it."""
    part = {"sha256": hashlib.sha256(content).hexdigest(), "data": base64.b64encode(content).decode()}
    return TranscriptPart.model_validate(part | fields)


def content_of(parts: list[TranscriptPart]) -> bytes:
    carried = [(part, base64.b64decode(part.data or "")) for part in parts]
    assert all(hashlib.sha256(data).hexdigest() == part.sha256 for part, data in carried)
    assert all(len(data) <= PART_BYTES_MAX for _, data in carried)
    return b"".join(gzip.decompress(data) if part.encoding == "gzip" else data for part, data in carried)


def test_a_part_that_fits_stays_as_it_is():
    part = carry(gzip.compress(SAID), encoding="gzip")
    assert list(read_parts([part])) == [part]


def test_a_part_without_a_checksum_gets_one():
    part = carry(SAID)
    assert list(read_parts([part.model_copy(update={"sha256": None})])) == [part]


def test_what_was_put_before_stays_named():
    part = TranscriptPart(sha256="0" * 64, ref="0" * 64)
    assert list(read_parts([part])) == [part]


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_a_part_that_is_too_large_is_cut_and_loses_nothing(encoding: str):
    content = random.Random(3).randbytes(PART_BYTES_MAX + 1_000)
    part = carry(gzip.compress(content) if encoding == "gzip" else content, encoding=encoding)

    parts = list(read_parts([part]))

    assert len(parts) > 1
    assert {part.encoding for part in parts} == {"gzip"}
    assert content_of(parts) == content


def test_a_file_is_packed_the_same_way_each_time(tmp_path: Path):
    (tmp_path / "a.jsonl").write_bytes(SAID)
    [part] = list(read_parts([tmp_path / "a.jsonl"]))
    assert content_of([part]) == SAID
    assert [part] == list(read_parts([tmp_path / "a.jsonl"]))


LARGE = gzip.compress(random.Random(5).randbytes(PART_BYTES_MAX + 9_000))


@pytest.mark.parametrize(
    ("part", "says"),
    [
        (carry(SAID, sha256="0" * 64), "part 1 is not what its sha256 says"),
        (carry(SAID, data="no base64!"), "part 1 is not base64"),
        (carry(LARGE[:-2_000], encoding="gzip"), "part 1 cannot be unpacked"),
        (carry(b"x" * (PART_BYTES_MAX + 1), encoding="gzip"), "part 1 cannot be unpacked"),
        (Path("nowhere") / "a.jsonl", "a.jsonl cannot be read: No such file"),
    ],
    ids=["another checksum", "no base64", "cut off", "not packed", "no file"],
)
def test_a_part_that_cannot_be_carried_says_why(part: TranscriptPart | Path, says: str):
    with pytest.raises(TranscriptUnreadable, match=says):
        list(read_parts([part]))
