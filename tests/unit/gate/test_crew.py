"""Threads that scan: results in order, scans that hang, and how many of those are borne."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from services.gate.crew import CrewBusy, ScanCrew
from services.gate.scan import Scan

SHORT = 0.05
HANGS = "hangs"


class Scans:
    """A scan that finds each text as it is, and hangs on one of them until it is let go."""

    def __init__(self) -> None:
        self.released = threading.Event()

    def __call__(self, text: str, now: float) -> Scan:
        if text == HANGS:
            self.released.wait(30)
        if text == "fails":
            raise ValueError(text)
        return Scan((text,))


@pytest.fixture
def scans() -> Iterator[Scans]:
    made = Scans()
    yield made
    made.released.set()


@pytest.fixture
async def crew() -> AsyncIterator[ScanCrew]:
    hired = ScanCrew(lost_max=2, text_seconds_max=SHORT)
    yield hired
    await hired.close()


async def test_texts_are_scanned_in_order(crew: ScanCrew, scans: Scans) -> None:
    texts = [str(number) for number in range(200)]
    assert await crew.scan_all(scans, texts) == [Scan((text,)) for text in texts]


async def test_no_texts_need_no_thread(crew: ScanCrew, scans: Scans) -> None:
    assert await crew.scan_all(scans, []) == []


async def test_a_text_whose_scan_does_not_come_back_is_incomplete_and_the_others_are_scanned(
    crew: ScanCrew, scans: Scans
) -> None:
    found = await crew.scan_all(scans, ["a", HANGS, "b"])
    assert found == [Scan(("a",)), Scan(complete=False), Scan(("b",))]


async def test_a_lost_thread_is_replaced(crew: ScanCrew, scans: Scans) -> None:
    assert await crew.scan_all(scans, [HANGS]) == [Scan(complete=False)]
    assert await crew.scan_all(scans, ["a"]) == [Scan(("a",))]


async def test_no_more_threads_are_lost_than_is_borne_then_nothing_is_judged(crew: ScanCrew, scans: Scans) -> None:
    assert await crew.scan_all(scans, [HANGS] * 3) == [Scan(complete=False)] * 3
    with pytest.raises(CrewBusy):
        await crew.scan_all(scans, ["a"])


async def test_a_lost_thread_that_comes_back_makes_room_again(crew: ScanCrew, scans: Scans) -> None:
    await crew.scan_all(scans, [HANGS] * 3)
    scans.released.set()
    again = Scans()
    # The third was not replaced: it is the one that works on, whenever it comes back.
    assert await crew.scan_all(again, ["a"]) == [Scan(("a",))]
    assert await crew.scan_all(again, [HANGS, "b"]) == [Scan(complete=False), Scan(("b",))]
    again.released.set()


async def test_a_small_question_does_not_wait_for_the_end_of_a_large_one() -> None:
    patient = ScanCrew()
    both_asked = threading.Event()
    scanned: list[str] = []

    def scan(text: str, _now: float) -> Scan:
        both_asked.wait(1)
        scanned.append(text)
        return Scan()

    large = asyncio.create_task(patient.scan_all(scan, ["large"] * 50))
    small = asyncio.create_task(patient.scan_all(scan, ["small"]))
    await asyncio.sleep(0)
    both_asked.set()
    await asyncio.gather(large, small)
    await patient.close()
    assert scanned.index("small") == 1


async def test_what_a_scan_raises_reaches_who_asked_and_the_thread_goes_on(crew: ScanCrew, scans: Scans) -> None:
    with pytest.raises(ValueError, match="fails"):
        await crew.scan_all(scans, ["a", "fails"])
    assert await crew.scan_all(scans, ["a"]) == [Scan(("a",))]
