"""How long `context` over HTTP takes, against `recall.request` over the bus: at most twice as long at p95.

Both are asked the same questions in one interleaved run, each by the client that an agent has; all services run in
this process, as under `lorebus up`. `context in a session` says which session asks, as hosts do.

    python -m bench.context [--json] [--entries 500] [--repeats 300]
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from lorebus import Lorebus
from lorebus.sessions.agentmemory import AgentMemoryProvider
from lorebus.sessions.records import ContextRequest, Observation

from cli.benchmarks.runs import Failure, build_failures
from cli.benchmarks.timing import Part, Timing, measure
from cli.one_machine import PROGRAMS, Machine, Ports, one_machine
from cli.own_servers import refuse_real_servers

PROJECT = "bench"
FACTOR = 2
SEED = 20_261_130
WARM_UP = 30
SAVES_AT_ONCE = 16
DEADLINE_SECONDS = 8.0
SERVICES = ("gate", "writer", "recall", "api")


async def bench_context(entries: int, repeats: int) -> dict[str, Timing]:
    refuse_real_servers("bench")
    with tempfile.TemporaryDirectory(prefix="lorebus-bench-") as folder:
        await asyncio.to_thread(Path(folder).chmod, 0o711)  # the servers' user has to pass through
        programs = [PROGRAMS[name] for name in SERVICES]
        async with one_machine(Path(folder) / "data", Ports(), programs=programs) as machine:
            return await measure_parts(machine, entries, repeats)


async def measure_parts(machine: Machine, entries: int, repeats: int) -> dict[str, Timing]:
    async with Lorebus(machine.nats_url) as memory:
        provider = AgentMemoryProvider({"baseUrl": machine.api_url, "projectId": PROJECT})
        failures = list(build_failures(entries, SEED))
        await fill(provider, failures)
        session = await provider.open_session()
        return await measure(build_parts(memory, provider, session.id, failures), repeats, WARM_UP, lambda: None)


async def fill(provider: AgentMemoryProvider, failures: Sequence[Failure]) -> None:
    slots = asyncio.Semaphore(SAVES_AT_ONCE)

    async def save(failure: Failure) -> None:
        async with slots:
            await provider.save(Observation("\n".join(failure.lines)))

    await asyncio.gather(*map(save, failures))


def build_parts(
    memory: Lorebus, provider: AgentMemoryProvider, session_id: str, failures: Sequence[Failure]
) -> dict[str, Part]:
    async def recall(number: int) -> None:
        query = failures[number % len(failures)].question
        reply = await memory.recall(query, project=PROJECT, deadline_seconds=DEADLINE_SECONDS)
        assert reply.items, reply.reason

    async def ask_context(number: int, asks_in: str | None) -> None:
        query = failures[number % len(failures)].question
        context = await provider.build_context(ContextRequest(query, session_id=asks_in))
        assert context.content

    return {
        "recall.request": recall,
        "context": lambda number: ask_context(number, None),
        "context in a session": lambda number: ask_context(number, session_id),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    timings = asyncio.run(bench_context(asked.entries, asked.repeats))
    ratio = timings["context in a session"].p95_ms / timings["recall.request"].p95_ms
    if asked.json:
        parts = {name: asdict(timing) for name, timing in timings.items()}
        print(json.dumps({"parts": parts, "ratio": ratio, "ok": ratio <= FACTOR}))
    else:
        for name, timing in timings.items():
            print(
                f"{name:22} p50 {timing.p50_ms:6.2f} ms  p95 {timing.p95_ms:6.2f} ms  CPU {timing.cpu_p50_ms:6.2f} ms"
            )
        print(f"p95 of a context in a session / p95 of a recall: {ratio:.2f}, at most {FACTOR}")
    sys.exit(ratio > FACTOR)


if __name__ == "__main__":
    main()
