"""Which transcripts travel inside the message, which ahead of it, and what stays behind."""

import base64
import hashlib
import random
from datetime import UTC, datetime

import pytest
from lorebus.carrying import NAMED_PART_BYTES_MAX, Carried, carry
from lorebus.contracts.runs import Transcript, TranscriptPart
from lorebus.putting import NotPut
from lorebus.transcripts import TranscriptFiles

ROOM = 256 * 1024


class Writer:
    """Takes so many parts, then refuses; remembers what it was asked."""

    def __init__(self, takes: int = 1_000, refusal: NotPut | None = None) -> None:
        self.takes = takes
        self.refusal = refusal or NotPut("too_large", "enough")
        self.asked: list[str] = []

    async def put(self, part: TranscriptPart) -> TranscriptPart:
        self.asked.append(part.sha256 or "")
        if len(self.asked) > self.takes:
            raise self.refusal
        return part.model_copy(update={"data": None, "ref": part.sha256})


def part(seed: str, size: int) -> TranscriptPart:
    content = random.Random(seed).randbytes(size)
    return TranscriptPart(sha256=hashlib.sha256(content).hexdigest(), data=base64.b64encode(content).decode())


def transcript(name: str, *sizes: int, day: int | None = None, attempt: int = 1) -> TranscriptFiles:
    closed_at = datetime(2026, 11, day, tzinfo=UTC) if day else None
    header = Transcript(id=name, format="claude-code-jsonl", closed_at=closed_at, attempt=attempt)
    return TranscriptFiles(header, [part(f"{name}{number}", size) for number, size in enumerate(sizes)])


def ways(carried: Carried) -> dict[str, list[str]]:
    return {one.id: ["ahead" if part.ref else "inside" for part in one.parts] for one in carried.transcripts}


async def test_what_fits_travels_inside():
    writer = Writer()
    given = [transcript("a", 50_000), transcript("b", 50_000)]
    carried = await carry(given, ROOM, writer.put)
    assert ways(carried) == {"a": ["inside"], "b": ["inside"]}
    assert [one.parts for one in carried.transcripts] == [one.parts for one in given]
    assert (carried.left_out, writer.asked) == ([], [])


async def test_what_does_not_fit_is_put_ahead_the_newest_first_and_told_in_the_order_given():
    writer = Writer()
    given = [transcript("new", 150_000, 10, day=2), transcript("old", 150_000, day=1), transcript("newest", 9, day=3)]

    carried = await carry(given, ROOM, writer.put)

    assert ways(carried) == {"new": ["ahead", "ahead"], "old": ["ahead"], "newest": ["ahead"]}
    assert list(ways(carried)) == ["new", "old", "newest"]
    assert carried.left_out == []
    order = [*given[2].parts, *given[0].parts, *given[1].parts]
    assert writer.asked == [part.sha256 for part in order if isinstance(part, TranscriptPart)]


async def test_the_later_attempt_goes_first_where_no_time_is_known():
    writer = Writer(takes=1)
    carried = await carry([transcript("two", 150_000, attempt=2), transcript("one", 150_000)], ROOM, writer.put)
    assert ways(carried) == {"two": ["ahead"]}


async def test_a_transcript_that_was_put_in_part_is_kept_up_to_there():
    carried = await carry([transcript("a", 150_000, 150_000, 150_000)], ROOM, Writer(takes=2).put)
    assert ways(carried) == {"a": ["ahead", "ahead"]}
    assert carried.left_out == ["transcript a, after part 2: enough"]


async def test_a_smaller_transcript_is_still_tried_when_one_was_too_large():
    writer = Writer(takes=0)
    carried = await carry([transcript("a", 150_000, day=1), transcript("b", 150_000, day=2)], ROOM, writer.put)
    assert (carried.transcripts, len(writer.asked)) == ([], 2)
    assert carried.left_out == ["transcript a: enough", "transcript b: enough"]


async def test_while_nobody_answers_the_newest_that_fits_travels_inside():
    writer = Writer(takes=0, refusal=NotPut("bus", "no service answers evidence.put"))
    given = [transcript("old", 150_000, day=1), transcript("huge", 400_000, day=3), transcript("new", 150_000, day=2)]

    carried = await carry(given, ROOM, writer.put)

    assert ways(carried) == {"new": ["inside"]}
    assert carried.left_out == [
        "transcript old: no service answers evidence.put",
        "transcript huge: no service answers evidence.put",
    ]
    assert len(writer.asked) == 1, "asked once, not for each transcript"


async def test_where_capture_is_off_nothing_is_carried_in_another_way():
    writer = Writer(takes=0, refusal=NotPut("capture_disabled", "it is off"))
    carried = await carry([transcript("a", 150_000), transcript("b", 150_000)], ROOM, writer.put)
    assert (carried.transcripts, len(writer.asked)) == ([], 1)
    assert carried.left_out == ["transcript a: it is off", "transcript b: it is off"]


@pytest.mark.parametrize("size", [10, 400_000], ids=["inside", "ahead"])
async def test_a_transcript_with_a_part_that_is_not_what_it_says_is_left_out_whole(size: int):
    bad = transcript("bad", 10, size)
    broken = TranscriptFiles(bad.transcript, [bad.parts[0], part("x", 5).model_copy(update={"sha256": "0" * 64})])
    writer = Writer()

    carried = await carry([broken, transcript("good", size)], ROOM, writer.put)

    assert list(ways(carried)) == ["good"]
    assert carried.left_out == ["transcript bad: part 2 is not what its sha256 says"]


async def test_the_message_is_never_filled_beyond_its_room():
    given = [transcript("a", *([40_000] * 9))]
    room = 3 * NAMED_PART_BYTES_MAX

    carried = await carry(given, room, Writer().put)

    assert 3 < len(carried.transcripts[0].parts) < 9
    assert len(carried.transcripts[0].model_dump_json(exclude_none=True)) < room
    assert "no room to name more parts" in carried.left_out[0]


async def test_no_room_at_all_leaves_all_behind():
    carried = await carry([transcript("a", 10), transcript("b")], 50, Writer().put)
    assert carried.transcripts == []
    assert len(carried.left_out) == 2
