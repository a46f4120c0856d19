"""When recall asks the gate, and when it need not."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from libs.common.errors import GateUnavailable
from libs.common.gate_client import Screening
from services.recall.rules import Found
from services.recall.screening import FRESH_SECONDS, Screener

CLEAN = Screening("p1", matched={}, incomplete=frozenset())


class Gate:
    """Stands for the bus: the real gate's answers are tested in integration."""

    def __init__(self, pattern_set: str | None) -> None:
        self.pattern_set = pattern_set
        self.asked: list[set[str]] = []

    async def find_pattern_set(self) -> str:
        if self.pattern_set is None:
            raise GateUnavailable("down")
        return self.pattern_set

    async def screen(self, _purpose: str, texts: dict[str, str], *, tenant: str) -> Screening:
        self.asked.append(set(texts))
        if self.pattern_set is None:
            raise GateUnavailable("down")
        return CLEAN


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def item(number: int, pattern_set: str = "p1") -> Found:
    return Found(UUID(int=number), "s", None, None, datetime.now(UTC), "r", pattern_set, 0.5, 0.3, 2)


async def test_what_the_set_in_force_cleared_is_not_asked_about() -> None:
    gate = Gate("p1")
    screener = Screener(gate)
    await screener.look()
    await screener.screen([item(1), item(2)], "default")
    assert gate.asked == []


async def test_only_what_another_set_cleared_is_asked_about() -> None:
    gate = Gate("p1")
    screener = Screener(gate)
    await screener.look()
    await screener.screen([item(1), item(2, "p0")], "default")
    assert gate.asked == [{str(UUID(int=2))}]


async def test_before_the_first_look_everything_is_asked_about() -> None:
    gate = Gate("p1")
    await Screener(gate).screen([item(1)], "default")
    assert len(gate.asked) == 1


async def test_a_gate_that_has_not_answered_for_long_counts_as_away() -> None:
    gate, clock = Gate("p1"), Clock()
    screener = Screener(gate, clock)
    await screener.look()
    clock.now += FRESH_SECONDS + 0.1
    gate.pattern_set = None
    with pytest.raises(GateUnavailable):
        await screener.screen([item(1)], "default")


async def test_a_gate_that_lost_its_patterns_counts_as_away_at_once() -> None:
    gate = Gate("p1")
    screener = Screener(gate)
    await screener.look()
    gate.pattern_set = None
    await screener.look()
    with pytest.raises(GateUnavailable):
        await screener.screen([item(1)], "default")


async def test_what_the_set_in_force_was_found_to_match_is_withheld_unasked() -> None:
    gate = Gate("p1")
    screener = Screener(gate)
    await screener.look()
    found = replace(item(1, "p0"), finding_set="p1", finding_patterns=["a.b"])
    screening = await screener.screen([found, item(2, "p0")], "default")
    assert screening.matched == {str(UUID(int=1)): ["a.b"]}
    assert gate.asked == [{str(UUID(int=2))}]
