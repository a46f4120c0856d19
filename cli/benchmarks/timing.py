"""Timing of several parts in turns of a few executions, each round in another order.

What disturbs the machine disturbs all parts alike. Within a turn one execution follows the other, as a caller that
asks again and again would see it; a part timed alone after a pause would mostly time cold caches.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from statistics import quantiles

TURN = 10
SETTLE_SECONDS = 0.4
"""What a part leaves to be done behind its answer, such as a journal, must not slow the next one."""

Part = Callable[[int], Awaitable[object]]
"""One execution; the number says which of the prepared questions it is about."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds of one part: what passed on the clock, and what this process computed meanwhile."""

    p50_ms: float
    p95_ms: float
    cpu_p50_ms: float


async def measure(
    parts: Mapping[str, Part],
    repeats: int,
    warm_up: int,
    advance: Callable[[], object],
    *,
    lingering: Collection[str] = (),
) -> dict[str, Timing]:
    """Each part `repeats` times after `warm_up` ones that do not count. `lingering` parts go on behind their end."""
    wall: dict[str, list[float]] = {name: [] for name in parts}
    cpu: dict[str, list[float]] = {name: [] for name in parts}
    chance = random.Random(repeats)  # noqa: S311 - a benchmark repeats itself
    for first in range(0, warm_up + repeats, TURN):
        for name in chance.sample(list(parts), len(parts)):
            for number in range(first, first + TURN):
                wall_ms, cpu_ms = await _time(parts[name], number)
                if number >= warm_up:
                    wall[name].append(wall_ms)
                    cpu[name].append(cpu_ms)
            if name in lingering:
                await asyncio.sleep(SETTLE_SECONDS)
        advance()
    return {name: summarise(wall[name], cpu[name]) for name in parts}


async def _time(part: Part, number: int) -> tuple[float, float]:
    """Milliseconds on the clock, and of this process' CPU."""
    computed, started = time.process_time(), time.perf_counter()
    await part(number)
    return (time.perf_counter() - started) * 1000, (time.process_time() - computed) * 1000


def summarise(wall_ms: list[float], cpu_ms: list[float]) -> Timing:
    steps = quantiles(wall_ms, n=20, method="inclusive")
    return Timing(p50_ms=steps[9], p95_ms=steps[18], cpu_p50_ms=quantiles(cpu_ms, n=2, method="inclusive")[0])
