"""Which transcripts are read, what is checked of them, and where reading stops."""

import base64
import gzip
import hashlib
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest
from lorebus.contracts.runs import Transcript, TranscriptPart
from transcript_builders import ENDLESS, Claude, digest_of, lines, nothing_put, part, transcript, unchanged

from services.writer.transcripts.deadline import Deadline, DigestTimedOut
from services.writer.transcripts.parts import READ_BYTES_MAX
from services.writer.transcripts.reading import build_digest, choose, is_implementer

MEBIBYTE = 1024 * 1024


def closed(day: int, **fields: Any) -> Transcript:
    return transcript(id=f"day {day}", closed_at=f"2026-01-{day:02}T00:00:00Z", **fields)


def chosen(*transcripts: Transcript) -> list[str]:
    return [one.id for one in choose(transcripts)]


def test_the_newest_three_are_read_oldest_first():
    assert chosen(closed(4), closed(1), closed(3), closed(2)) == ["day 2", "day 3", "day 4"]


def test_a_time_without_an_offset_is_read_as_utc():
    assert chosen(closed(2), transcript(id="naive", closed_at="2026-01-01T00:00:00")) == ["naive", "day 2"]


def test_without_a_time_a_transcript_of_a_finished_run_counts_before_those_that_have_one():
    assert chosen(closed(1), transcript(id="open", closed_at=None)) == ["open", "day 1"]
    assert chosen(*map(closed, (1, 2, 3)), transcript(id="open", closed_at=None)) == ["day 1", "day 2", "day 3"]


IMPLEMENTERS = """executeImplementation executeCIFixImplementation executeReviewFixImplementation resolveMergeConflict
executeGateFixImplementation implementer ciFixer CI_FIX gate-fixer conflictResolver"""


@pytest.mark.parametrize("activity", [*IMPLEMENTERS.split(), "", None])
def test_sessions_that_change_code_count(activity: str | None):
    assert is_implementer(activity)


@pytest.mark.parametrize(
    "activity", ["runReviewNetwork", "reviewImplementation", "commitToMemory", "planDecomposition", "loadFixtures"]
)
def test_sessions_that_change_no_code_do_not_count(activity: str):
    assert not is_implementer(activity)
    assert chosen(closed(1, activity_type=activity)) == []


def test_of_a_retried_session_the_last_try_counts():
    tries = [closed(day, recording_id="r", attempt=attempt) for day, attempt in ((1, 1), (2, 3), (3, 2))]
    assert chosen(*tries) == ["day 2"]


@pytest.mark.parametrize(
    "other",
    [{"recording_id": "s"}, {"activity_type": "ciFixer"}, {"step_attempt": 2}],
    ids=["recording", "activity", "step attempt"],
)
def test_sessions_that_differ_are_no_tries_of_one(other: dict[str, Any]):
    assert len(chosen(closed(1, recording_id="r"), closed(2, **{"recording_id": "r", **other}))) == 2


def test_transcripts_without_a_recording_are_all_kept():
    assert chosen(closed(1, attempt=1), closed(2, attempt=2)) == ["day 1", "day 2"]


def note(text: str) -> bytes:
    return Claude().say(text)


def test_parts_are_read_as_one_document():
    content = note("é" * 50)
    cut = len(content) // 2
    parts = [part(content[:cut], "gzip"), part(content[cut:])]
    assert list(digest_of(transcript(parts=parts)).entries().values()) == ["é" * 50]


def test_a_part_is_fetched_by_its_reference():
    carried = gzip.compress(note("put before"))
    named = {"ref": "p1", "encoding": "gzip", "sha256": hashlib.sha256(carried).hexdigest().upper()}
    digest = build_digest([transcript(parts=[named])], {"p1": carried}.__getitem__, unchanged, ENDLESS)
    assert list(digest.entries().values()) == ["put before"]


BAD = {
    "checksum": part(note("swapped"), sha256="0" * 64),
    "no checksum": part(note("unsigned"), sha256=None),
    "checksum of the unpacked": part(note("x"), "gzip", sha256=hashlib.sha256(note("x")).hexdigest()),
    "gzip": {**part(b"no gzip"), "encoding": "gzip"},
    "cut gzip": {**part(gzip.compress(note("x"))[:-12]), "encoding": "gzip"},
    "damaged gzip": {**part(gzip.compress(note("x" * 99))[:20] + b"\xff" * 40), "encoding": "gzip"},
    "base64": {**part(b"x"), "data": "é"},
    "unknown reference": {"ref": "gone", "sha256": "0" * 64},
    "nothing": {"sha256": "0" * 64},
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_transcript_with_a_bad_part_is_skipped_whole(bad: dict[str, Any]):
    skipped = transcript(id="bad", parts=[part(note("before")), bad, part(note("after"))])
    good = transcript(note("other"), id="good")
    digest = digest_of(skipped, good)
    assert (digest.transcript_ids, list(digest.entries().values())) == (("good",), ["other"])


def test_a_bad_part_is_told_before_it_is_unpacked():
    bomb = {**part(b"", "gzip", sha256="0" * 64), "data": base64.b64encode(zeros(64)).decode()}
    with peak_below(8 * MEBIBYTE):
        assert digest_of(transcript(parts=[bomb])).is_empty


def test_a_format_that_nobody_knows_is_skipped():
    assert digest_of(transcript(note("x"), format="tape")).is_empty


def test_an_outage_of_the_store_is_not_a_bad_part():
    def fetch(ref: str) -> bytes:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        build_digest([transcript(parts=[{"ref": "p", "sha256": "0" * 64}])], fetch, unchanged, ENDLESS)


def filler(length: int) -> bytes:
    return b" " * (length - 1) + b"\n"


def test_reading_stops_at_the_part_that_would_pass_the_bound():
    first, second = note("first"), note("second")
    exact = [part(filler(READ_BYTES_MAX - len(first)), "gzip"), part(first)]
    assert list(digest_of(transcript(parts=exact)).entries().values()) == ["first"]
    past = [part(first), part(filler(READ_BYTES_MAX - len(first)) + second, "gzip"), part(note("third"))]
    assert list(digest_of(transcript(parts=past)).entries().values()) == ["first"]


def test_the_bound_is_over_all_transcripts():
    big = transcript(
        id="big", closed_at="2026-01-01T00:00:00Z", parts=[part(note("big") + filler(5 * MEBIBYTE), "gzip")]
    )
    later = transcript(id="later", closed_at="2026-01-02T00:00:00Z", parts=[part(filler(4 * MEBIBYTE), "gzip")])
    last = transcript(note("small"), id="last", closed_at="2026-01-03T00:00:00Z")
    assert digest_of(big, later, last).transcript_ids == ("big",)


@contextmanager
def peak_below(bytes_max: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < bytes_max
    finally:
        tracemalloc.stop()


def zeros(mebibytes: int) -> bytes:
    return gzip.compress(bytes(MEBIBYTE)) * mebibytes


def session_part(number: int, mebibytes: int) -> bytes:
    """A part of a session that fails, writes and talks all the time."""
    claude = Claude()
    lines_: list[bytes] = []
    while sum(map(len, lines_)) < 64 * 1024:
        failed = claude.run(f"make {number}", "Exit code 1\n" + "x" * 900, is_error=True)
        lines_ += [failed, claude.use("Write", "ok", file_path=f"{number}.py"), claude.say("y" * 400)]
    block = b"".join(lines_)
    return block * (mebibytes * MEBIBYTE // len(block))


def test_a_transcript_of_200_mebibytes_is_stopped_at_the_bound_in_flat_memory():
    carried = gzip.compress(session_part(0, 4))
    assert len(carried) <= 512 * 1024
    fetched = count()

    def fetch(ref: str) -> bytes:
        next(fetched)
        return carried

    sha256 = hashlib.sha256(carried).hexdigest()
    parts = [TranscriptPart(ref=f"part {n}", sha256=sha256, encoding="gzip") for n in range(50)]
    long = transcript().model_copy(update={"parts": parts})
    with peak_below(40 * MEBIBYTE):
        assert not build_digest([long], fetch, unchanged, ENDLESS).is_empty
    assert next(fetched) == 3


def test_a_part_that_blows_up_is_refused_without_unpacking_it():
    bomb = zeros(400)
    assert len(bomb) <= 512 * 1024
    made = transcript(parts=[part(note("before")), {**part(b""), **carried_as(bomb)}])
    with peak_below(40 * MEBIBYTE):
        assert list(digest_of(made).entries().values()) == ["before"]


def carried_as(carried: bytes) -> dict[str, str]:
    data = base64.b64encode(carried).decode()
    return {"data": data, "encoding": "gzip", "sha256": hashlib.sha256(carried).hexdigest()}


def ticking(end: float) -> Deadline:
    """A clock that goes on by one at each look."""
    ticks = count()
    return Deadline(lambda: float(next(ticks)), end)


def digest_within(end: float, *transcripts: Transcript) -> None:
    build_digest(transcripts, nothing_put, unchanged, ticking(end))


MANY = {
    "records": lambda: transcript(lines(*({"n": n} for n in range(500)))),
    "parts": lambda: transcript(*(b"\n" for _ in range(500))),
    "chunks": lambda: transcript(parts=[part(b" " * 7 * MEBIBYTE, "gzip")]),
    "records of one document": lambda: transcript(
        b'{"trajectory": [' + b",".join([b'{"action": "ls"}'] * 500) + b"]}", format="swe-agent-traj"
    ),
}


@pytest.mark.parametrize("make", MANY.values(), ids=MANY)
def test_time_is_looked_at_between_parts_chunks_and_records(make: Callable[[], Transcript]):
    digest_within(10_000, make())
    with pytest.raises(DigestTimedOut):
        digest_within(50, make())
