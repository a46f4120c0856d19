"""The memory steps as nodes of a LangGraph graph: `execute` runs in a node for each step, `rollback` after a failure.

    pip install langgraph
    lorebus up --api-port 3111
    python examples/pipelines/langgraph_nodes.py

A graph has no rollback of its own: whoever invokes it sees the error, and tells the modifiers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from lorebus.pipeline.context import RunContext, Work
from lorebus.pipeline.hooks import Build, PipelineHooks, collect_hooks, roll_back
from lorebus.pipeline.modifier import MODIFIER_ID, MemoryModifier
from lorebus.sessions.facade import MemoryFacade
from lorebus.sessions.registry import Caller

Hooks = Sequence[PipelineHooks[RunContext]]


class State(TypedDict, total=False):
    run: RunContext
    draft: str


Node = Callable[[State], Awaitable[State]]


class MemoryGraph:
    """A chain of nodes between the memory steps, with nothing but the nodes where memory is off."""

    def __init__(self, nodes: dict[str, Node], hooks: Hooks) -> None:
        self._hooks = hooks
        placed = [(step, build_node(one, step.id)) for one in hooks for step in one.steps]
        first = {step.id: node for step, node in placed if step.position == "first"}
        last = {step.id: node for step, node in placed if step.position == "last"}
        self.nodes = {**first, **nodes, **last}
        graph = StateGraph(State)
        for name, node in self.nodes.items():
            graph.add_node(name, node)
        for before, after in pairwise([START, *self.nodes, END]):
            graph.add_edge(before, after)
        self._compiled = graph.compile()

    async def run(self, state: State) -> dict[str, Any]:
        try:
            return await self._compiled.ainvoke(state)
        except BaseException as error:
            await roll_back(self._hooks, state["run"], error)
            raise


def build_node(hooks: PipelineHooks[RunContext], step_id: str) -> Node:
    async def node(state: State) -> State:
        return {"run": await hooks.execute(step_id, state["run"])}

    return node


async def write(state: State) -> State:
    """Your model goes here."""
    run = state["run"]
    run.item_count = 1
    return {"draft": f"{run.memory_block}\n\nTask: {run.prompt}".strip()}


async def main() -> None:
    memory = MemoryFacade().bind(Caller("example"))
    build = Build("agent-pipeline", {MODIFIER_ID: {"enabled": True}})
    graph = MemoryGraph({"write": write}, collect_hooks([MemoryModifier[RunContext](memory)], build))
    for prompt in ("List the products", "List the products again"):
        state = await graph.run({"run": RunContext(Work(slug="shop", name="Shop"), prompt)})
        print(state["draft"])


if __name__ == "__main__":
    asyncio.run(main())
