"""Fits transcripts to one message: inside it where all fit, else put ahead of it, the newest first.

The writer reads a transcript from its start, so one that cannot be put to its end is worth having up to there.
One of which nothing could be put because nobody answered travels inside the message where there is room left.
One with a part that cannot be read is left out whole: with a hole it would tell another story.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel

from lorebus.contracts.runs import Transcript, TranscriptPart
from lorebus.putting import NotPut
from lorebus.transcripts import TranscriptFiles, TranscriptUnreadable, read_parts

NAMED_PART_BYTES_MAX = 512
"""A checksum, a reference as long as one, and their names; with room to spare for longer references."""

Put = Callable[[TranscriptPart], Awaitable[TranscriptPart]]
"""Puts a part ahead; gives the part as the run names it, or raises NotPut."""


@dataclass(frozen=True, slots=True)
class Carried:
    """The transcripts as the run tells them, and what stayed behind, each with the reason."""

    transcripts: list[Transcript] = field(default_factory=list[Transcript])
    left_out: list[str] = field(default_factory=list[str])


async def carry(luggage: Sequence[TranscriptFiles], room_bytes: int, put: Put) -> Carried:
    """In the order given, taking at most so many bytes of the message."""
    inside = await asyncio.to_thread(pack_inside, luggage, room_bytes)
    return inside if inside is not None else await Loading(room_bytes, put).load(luggage)


def pack_inside(luggage: Sequence[TranscriptFiles], room_bytes: int) -> Carried | None:
    """All that can be read, inside the message; None where that does not fit. It blocks."""
    carried = Carried()
    for one in luggage:
        try:
            transcript = find_inside(one, room_bytes)
        except TranscriptUnreadable as error:
            carried.left_out.append(_say(one, error))
            continue
        if transcript is None:
            return None
        room_bytes -= _measure(transcript)
        carried.transcripts.append(transcript)
    return carried


def find_inside(one: TranscriptFiles, room_bytes: int) -> Transcript | None:
    """The transcript with its parts, or None where it is larger. It blocks. Errors: TranscriptUnreadable."""
    left_bytes = room_bytes - _measure(one.with_parts(()))
    parts: list[TranscriptPart] = []
    for part in read_parts(one.parts):
        left_bytes -= _measure(part)
        if left_bytes < 0:
            break
        parts.append(part)
    return one.with_parts(parts) if left_bytes >= 0 else None


class Loading:
    """Transcripts on their way ahead, and the room that is left in the message for naming them."""

    def __init__(self, room_bytes: int, put: Put) -> None:
        self._room_bytes = room_bytes
        self._put = put
        self._halt: NotPut | None = None
        """Why no part at all can be put any more."""

    async def load(self, luggage: Sequence[TranscriptFiles]) -> Carried:
        kept: dict[int, Transcript] = {}
        left_out: dict[int, str] = {}
        for place in sorted(range(len(luggage)), key=lambda place: (luggage[place].age_key, place), reverse=True):
            one = luggage[place]
            try:
                kept[place], fault = await self._load_one(one)
            except (TranscriptUnreadable, NotPut) as fault:
                left_out[place] = _say(one, fault)
                continue
            self._room_bytes -= _measure(kept[place])
            if fault is not None:
                left_out[place] = _say(one, fault, parts_kept=len(kept[place].parts))
        return Carried([kept[place] for place in sorted(kept)], [left_out[place] for place in sorted(left_out)])

    async def _load_one(self, one: TranscriptFiles) -> tuple[Transcript, NotPut | None]:
        """The transcript, and what ended it early. Raises NotPut where nothing of it can travel."""
        parts, fault = await self._put_parts(one)
        if fault is None or parts:
            return one.with_parts(parts), fault
        inside = await asyncio.to_thread(find_inside, one, self._room_bytes) if fault.is_outage else None
        if inside is None:
            raise fault
        return inside, None

    async def _put_parts(self, one: TranscriptFiles) -> tuple[list[TranscriptPart], NotPut | None]:
        """Those that were put, from the first on, and why not all were."""
        left_bytes = self._room_bytes - _measure(one.with_parts(()))
        named: list[TranscriptPart] = []
        if left_bytes < 0:
            return named, NotPut("no_room", "the message has no room to name it")
        async for part in _read(one):
            if left_bytes < NAMED_PART_BYTES_MAX:
                return named, NotPut("no_room", "the message has no room to name more parts")
            try:
                named.append(await self._put_one(part))
            except NotPut as fault:
                return named, fault
            left_bytes -= _measure(named[-1])
        return named, None

    async def _put_one(self, part: TranscriptPart) -> TranscriptPart:
        if part.data is None:
            return part
        if self._halt is not None:
            raise self._halt
        try:
            return await self._put(part)
        except NotPut as fault:
            self._halt = fault if fault.is_for_all else None
            raise


async def _read(one: TranscriptFiles) -> AsyncIterator[TranscriptPart]:
    parts = read_parts(one.parts)
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        yield part


def _measure(value: BaseModel) -> int:
    """In bytes, within a list of the message."""
    return len(value.model_dump_json(exclude_none=True).encode()) + len(",")


def _say(one: TranscriptFiles, fault: Exception, parts_kept: int = 0) -> str:
    place = f", after part {parts_kept}" if parts_kept else ""
    return f"transcript {one.transcript.id}{place}: {fault}"
