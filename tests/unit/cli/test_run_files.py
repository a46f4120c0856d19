"""Run events from files, and the transcripts that travel with them."""

import base64
import gzip
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest
from lorebus import InvalidMessage
from lorebus.publishing import RUN_BYTES_MAX, measure_run

from cli.run_files import read_run_file

RUN = {"run_id": "r1", "repository": "acme/shop", "outcome": "CI_FAILED"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`runs` beside `transcripts`, below a folder that nothing may be read from."""
    for name in ("given/runs", "given/transcripts"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path / "given"


def write_run(folder: Path, **fields: Any) -> Path:
    path = folder / "runs" / "run.json"
    path.write_text(json.dumps(RUN | fields))
    return path


def transcript(name: str, path: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "format": "claude-code-jsonl", "parts": [{"path": path, "sha256": "of the file"}], **fields}


def noise(size: int, seed: int) -> bytes:
    """Bytes that do not pack."""
    return random.Random(seed).randbytes(size)


@pytest.mark.parametrize("where", ["../transcripts/a.jsonl", "transcripts/a.jsonl", "a.jsonl"])
def test_a_part_is_read_beside_the_run_file_or_its_parent(folder: Path, where: str):
    base = folder if where.startswith("transcripts") else folder / "runs"
    (base / where).write_text("said\n" * 100)

    read = read_run_file(write_run(folder, transcripts=[transcript("t1", where)]), "default")

    [part] = read.run.transcripts[0].parts
    carried = base64.b64decode(part.data or "")
    assert gzip.decompress(carried) == b"said\n" * 100
    assert (part.encoding, part.sha256) == ("gzip", hashlib.sha256(carried).hexdigest())
    assert read.left_out == ()


def test_the_same_files_give_the_same_message(folder: Path):
    (folder / "runs" / "a.jsonl").write_text("said")
    path = write_run(folder, transcripts=[transcript("t1", "a.jsonl")])
    assert read_run_file(path, "default") == read_run_file(path, "default")


def test_inline_parts_stay_as_they_are(folder: Path):
    part = {"sha256": "x", "encoding": "identity", "data": "c2FpZA=="}
    given = {"id": "t1", "format": "swe-agent-traj", "parts": [part]}
    read = read_run_file(write_run(folder, transcripts=[given]), "default")
    assert read.run.transcripts[0].parts[0].data == "c2FpZA=="


def test_nothing_is_read_from_elsewhere(folder: Path):
    (folder.parent / "secret").write_text("hidden")
    (folder / "runs" / "link").symlink_to(folder.parent / "secret")
    wanted = ["../../secret", str(folder.parent / "secret"), "link", "/etc/passwd"]

    read = read_run_file(
        write_run(folder, transcripts=[transcript(f"t{at}", path) for at, path in enumerate(wanted)]), "default"
    )

    assert read.run.transcripts == []
    assert len(read.left_out) == 4


def test_the_newest_transcripts_are_kept_when_not_all_fit(folder: Path):
    for name, size in (("old", 100_000), ("new", 100_000), ("newest", 60_000)):
        (folder / "runs" / name).write_bytes(noise(size, len(name)))
    given = [
        transcript("newest", "newest", closed_at="2026-11-30T12:00:00Z"),
        transcript("old", "old", closed_at="2026-11-28T12:00:00Z"),
        transcript("new", "new", closed_at="2026-11-29T12:00:00"),
    ]

    read = read_run_file(write_run(folder, transcripts=given), "default")

    assert [kept.id for kept in read.run.transcripts] == ["newest", "new"]
    assert read.left_out == ("transcript old: does not fit the 256 KiB of a message",)
    assert measure_run(read.run) <= RUN_BYTES_MAX


def test_the_later_attempt_wins_where_no_time_is_known(folder: Path):
    (folder / "runs" / "a").write_bytes(noise(150_000, 1))
    given = [transcript("second", "a", attempt=2), transcript("first", "a", attempt=1)]
    read = read_run_file(write_run(folder, transcripts=given), "default")
    assert [kept.id for kept in read.run.transcripts] == ["second"]


def test_a_transcript_that_cannot_be_read_costs_only_itself(folder: Path):
    (folder / "runs" / "a").write_text("said")
    given = [transcript("gone", "nowhere"), "no object", {"id": "no format"}, transcript("t1", "a")]

    read = read_run_file(write_run(folder, transcripts=given), "default")

    assert [kept.id for kept in read.run.transcripts] == ["t1"]
    assert len(read.left_out) == 3
    assert "nowhere" in read.left_out[0]


@pytest.mark.parametrize("given", [None, "x", {}, 7])
def test_transcripts_that_are_no_list_are_none(folder: Path, given: Any):
    assert read_run_file(write_run(folder, transcripts=given), "default").run.transcripts == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[]", "not an object"),
        (b"{}", "run_id: missing"),
        (b'{"run_id": "r", "repository": "a b", "outcome": "MERGED"}', "repository"),
    ],
)
def test_a_file_that_is_no_run_says_why(tmp_path: Path, content: bytes, says: str):
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(InvalidMessage, match=says):
        read_run_file(path, "default")


def test_a_folder_or_nothing_says_so(tmp_path: Path):
    with pytest.raises(InvalidMessage, match="name its files"):
        read_run_file(tmp_path, "default")
    with pytest.raises(InvalidMessage, match="No such file"):
        read_run_file(tmp_path / "none.json", "default")
