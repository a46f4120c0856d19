"""What the gate costs: CPU time by size and by text, and what an event loop feels of it."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from cli.evaluations.hostile import build_hostile
from cli.evaluations.judging import Gate, Judged, Track, timed
from cli.evaluations.shares import percentile

KILOBYTE = 1024
LARGE_BYTES = 4 * KILOBYTE
LARGE_TEXTS_MAX = 200
ATTEMPTS = 3
"""Of each hostile text; the least counts, since what disturbs the machine only adds."""
TICK_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class Hostile:
    name: str
    scan_ms: float
    mask_ms: float
    lag_ms: float


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU time of one core; a kilobyte has 1,024 bytes of UTF-8. `lag_ms` is on the clock."""

    scan_us_per_kb: float
    mask_us_per_kb: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    large_texts: int
    large_p99_ms: float
    hostile: tuple[Hostile, ...]

    @property
    def us_per_kb(self) -> float:
        return self.scan_us_per_kb + self.mask_us_per_kb

    @property
    def hostile_ms(self) -> float:
        return max(one.scan_ms for one in self.hostile)

    @property
    def lag_ms(self) -> float:
        return max(one.lag_ms for one in self.hostile)

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "us_per_kb": self.us_per_kb}


async def measure_costs(judged: Sequence[Judged], gate: Gate, examples: Sequence[str], track: Track) -> Costs:
    kilobytes = sum(len(one.row.text.encode()) for one in judged) / KILOBYTE
    millis = [one.seconds * 1000 for one in judged]
    large = list(build_large([one.row.text for one in judged if not one.row.is_attack]))
    large_ms = [_large_ms(text, gate) for text in track(large, "texts of 4 kB")]
    hostile = list(build_hostile(examples).items())
    with ThreadPoolExecutor(max_workers=1) as threads:
        spent = [await _spend(name, text, gate, threads) for name, text in track(hostile, "hostile texts")]
    return Costs(
        scan_us_per_kb=sum(one.scan_seconds for one in judged) * 1e6 / kilobytes,
        mask_us_per_kb=sum(one.mask_seconds for one in judged) * 1e6 / kilobytes,
        p50_ms=percentile(millis, 50),
        p99_ms=percentile(millis, 99),
        max_ms=max(millis),
        large_texts=len(large),
        large_p99_ms=percentile(large_ms, 99),
        hostile=tuple(spent),
    )


def build_large(texts: Sequence[str]) -> Iterator[str]:
    """Texts of 4 kB, each of several benign ones."""
    joined = "\n\n".join(texts).encode()
    for start in range(0, min(len(joined) // LARGE_BYTES, LARGE_TEXTS_MAX) * LARGE_BYTES, LARGE_BYTES):
        yield joined[start : start + LARGE_BYTES].decode("utf-8", "ignore")


def _large_ms(text: str, gate: Gate) -> float:
    return timed(gate.pass_through, text)[1] * 1000


async def _spend(name: str, text: str, gate: Gate, threads: ThreadPoolExecutor) -> Hostile:
    scans = [await _measure_lag(lambda: timed(gate.scan, text)[1], threads) for _ in range(ATTEMPTS)]
    masks = [timed(gate.mask, text)[1] for _ in range(ATTEMPTS)]
    return Hostile(
        name=name,
        scan_ms=min(seconds for seconds, _ in scans) * 1000,
        mask_ms=min(masks) * 1000,
        lag_ms=min(lag for _, lag in scans) * 1000,
    )


async def _measure_lag(work: Callable[[], float], threads: ThreadPoolExecutor) -> tuple[float, float]:
    """What the work tells, done in a thread as the service does, and how late the loop woke at worst meanwhile."""
    working = asyncio.get_running_loop().run_in_executor(threads, work)
    lag = 0.0
    while not working.done():
        started = time.perf_counter()
        await asyncio.sleep(TICK_SECONDS)
        lag = max(lag, time.perf_counter() - started - TICK_SECONDS)
    return await working, lag
