"""A pipeline of plain async functions that starts with what its earlier runs learned, and leaves a digest of this one.

    lorebus up --api-port 3111
    python examples/pipelines/plain_functions.py

Where the memory is elsewhere, AGENTMEMORY_BASE_URL names it. The memory steps are in the pipeline only where the Work
has enabled them; without a backend the pipeline runs as well.
"""

import asyncio
from collections.abc import Mapping

from lorebus.pipeline.context import RunContext, Work
from lorebus.pipeline.hooks import Build, collect_hooks
from lorebus.pipeline.modifier import MODIFIER_ID, MemoryModifier
from lorebus.pipeline.runner import Pipeline, Step
from lorebus.sessions.facade import MemoryFacade
from lorebus.sessions.provider import Memory
from lorebus.sessions.registry import Caller

SHOP = Work(id="w1", slug="shop", name="Shop")


async def collect(run: RunContext) -> None:
    run.item_count = 2


async def write(run: RunContext) -> None:
    """Your model goes here: the block is reference data, ready for its prompt."""
    print(f"{run.memory_block}\n\nTask: {run.prompt}".strip())


def build_pipeline(memory: Memory, settings: Mapping[str, object]) -> Pipeline[RunContext]:
    """`settings` are the Work's, as they are now: the run keeps to them."""
    build = Build("standard-pipeline", {MODIFIER_ID: settings})
    hooks = collect_hooks([MemoryModifier[RunContext](memory)], build)
    return Pipeline([Step("collect", collect), Step("write", write)], hooks)


async def main() -> None:
    memory = MemoryFacade().bind(Caller("example"))
    pipeline = build_pipeline(memory, {"enabled": True})
    for prompt in ("List the products", "List the products again"):
        await pipeline.run(RunContext(SHOP, prompt))


if __name__ == "__main__":
    asyncio.run(main())
