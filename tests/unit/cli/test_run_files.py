"""Run events from files, and the transcripts that travel with them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from lorebus import InvalidMessage
from lorebus.contracts.runs import TranscriptPart

from cli.run_files import TRANSCRIPT_BYTES_MAX, read_run_file

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


@pytest.mark.parametrize("where", ["../transcripts/a.jsonl", "transcripts/a.jsonl", "a.jsonl"])
def test_a_part_is_found_beside_the_run_file_or_its_parent(folder: Path, where: str):
    base = folder if where.startswith("transcripts") else folder / "runs"
    (base / where).write_text("said")

    read = read_run_file(write_run(folder, transcripts=[transcript("t1", where)]))

    assert [(one.transcript.id, one.parts) for one in read.transcripts] == [("t1", [(base / where).resolve()])]
    assert (read.run.transcripts, read.left_out) == ([], ())


def test_inline_parts_stay_as_they_are(folder: Path):
    part = {"sha256": "x", "encoding": "identity", "data": "c2FpZA=="}
    given = {"id": "t1", "format": "swe-agent-traj", "parts": [part]}
    [read] = read_run_file(write_run(folder, transcripts=[given])).transcripts
    assert read.parts == [TranscriptPart(sha256="x", data="c2FpZA==")]


def test_nothing_is_read_from_elsewhere(folder: Path):
    (folder.parent / "secret").write_text("hidden")
    (folder / "runs" / "link").symlink_to(folder.parent / "secret")
    wanted = ["../../secret", str(folder.parent / "secret"), "link", "/etc/passwd", "a\0b", "a" * 5_000]

    read = read_run_file(write_run(folder, transcripts=[transcript(f"t{at}", path) for at, path in enumerate(wanted)]))

    assert read.transcripts == ()
    assert len(read.left_out) == len(wanted)


def test_a_file_that_no_session_wrote_is_left_out_unread(folder: Path):
    (folder / "runs" / "a").touch()
    os.truncate(folder / "runs" / "a", TRANSCRIPT_BYTES_MAX + 1)
    read = read_run_file(write_run(folder, transcripts=[transcript("t1", "a")]))
    assert read.left_out == ("transcript 1: a is larger than 1024 MiB",)


def test_a_transcript_that_cannot_be_read_costs_only_itself(folder: Path):
    (folder / "runs" / "a").write_text("said")
    given = [transcript("gone", "nowhere"), "no object", {"id": "no format"}, transcript("t1", "a")]
    given.append({"id": "t2", "format": "x", "parts": ["no object"]})

    read = read_run_file(write_run(folder, transcripts=given))

    assert [kept.transcript.id for kept in read.transcripts] == ["t1"]
    assert len(read.left_out) == 4
    assert "nowhere" in read.left_out[0]


@pytest.mark.parametrize("given", [None, "x", {}, 7])
def test_transcripts_that_are_no_list_are_none(folder: Path, given: Any):
    assert read_run_file(write_run(folder, transcripts=given)).transcripts == ()


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
        read_run_file(path)


def test_a_folder_or_nothing_says_so(tmp_path: Path):
    with pytest.raises(InvalidMessage, match="name its files"):
        read_run_file(tmp_path)
    with pytest.raises(InvalidMessage, match="No such file"):
        read_run_file(tmp_path / "none.json")
