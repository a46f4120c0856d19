"""Timing of several parts in turn, each round in another order: what disturbs the machine disturbs all of them."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from statistics import quantiles

SETTLE_SECONDS = 0.1
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
    """Each part `repeats` times after `warm_up` rounds that do not count. `lingering` parts go on behind their end."""
    wall: dict[str, list[float]] = {name: [] for name in parts}
    cpu: dict[str, list[float]] = {name: [] for name in parts}
    chance = random.Random(repeats)  # noqa: S311 - a benchmark repeats itself
    for number in range(warm_up + repeats):
        for name in chance.sample(list(parts), len(parts)):
            computed, started = time.process_time(), time.perf_counter()
            await parts[name](number)
            passed = time.perf_counter() - started
            if number >= warm_up:
                wall[name].append(passed * 1000)
                cpu[name].append((time.process_time() - computed) * 1000)
            if name in lingering:
                await asyncio.sleep(SETTLE_SECONDS)
        advance()
    return {name: summarise(wall[name], cpu[name]) for name in parts}


def summarise(wall_ms: list[float], cpu_ms: list[float]) -> Timing:
    steps = quantiles(wall_ms, n=20, method="inclusive")
    return Timing(p50_ms=steps[9], p95_ms=steps[18], cpu_p50_ms=quantiles(cpu_ms, n=2, method="inclusive")[0])
