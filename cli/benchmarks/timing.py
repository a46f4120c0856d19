"""Timing of several parts in turn, each round in another order: what disturbs the machine disturbs all of them."""

import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from statistics import quantiles

Part = Callable[[int], Awaitable[object]]
"""One execution; the number says which of the prepared questions it is about."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds of one part: what passed on the clock, and what this process computed meanwhile."""

    p50_ms: float
    p95_ms: float
    cpu_p50_ms: float


async def measure(
    parts: Mapping[str, Part], repeats: int, warm_up: int, advance: Callable[[], object]
) -> dict[str, Timing]:
    """Each part `repeats` times after `warm_up` rounds that do not count."""
    wall: dict[str, list[float]] = {name: [] for name in parts}
    cpu: dict[str, list[float]] = {name: [] for name in parts}
    chance = random.Random(repeats)  # noqa: S311 - a benchmark repeats itself
    for number in range(warm_up + repeats):
        for name in chance.sample(list(parts), len(parts)):
            wall_ms, cpu_ms = await _time(parts[name], number)
            if number >= warm_up:
                wall[name].append(wall_ms)
                cpu[name].append(cpu_ms)
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
