"""The example for LangGraph does what it says, where LangGraph is installed."""

import importlib
from typing import Any

import pytest
from agentmemory_server import FIXTURES, Backend
from lorebus.pipeline.context import RunContext, Work
from lorebus.pipeline.hooks import Build, collect_hooks
from lorebus.pipeline.modifier import MODIFIER_ID, MemoryModifier
from lorebus.sessions.agentmemory import AgentMemoryProvider

pytest.importorskip("langgraph", reason="LangGraph is not installed")
example = importlib.import_module("examples.pipelines.langgraph_nodes")

backend_server, backend = FIXTURES


def graph_of(backend: Backend, node: Any, **settings: object) -> Any:
    modifier = MemoryModifier[RunContext](AgentMemoryProvider(backend.settings))
    hooks = collect_hooks([modifier], Build("agent-pipeline", {MODIFIER_ID: settings}))
    return example.MemoryGraph({"write": node}, hooks)


def run_of(**fields: str) -> dict[str, RunContext]:
    return {"run": RunContext(Work("w1", "shop", "Shop"), "List the products", **fields)}


async def test_the_next_run_of_a_graph_starts_with_what_the_first_one_left(backend: Backend) -> None:
    graph = graph_of(backend, example.write, enabled=True)
    first, second = await graph.run(run_of()), await graph.run(run_of())
    assert first["draft"] == "Task: List the products"
    assert '<agent_memory>\nWork "Shop" completed with 1 item.\n</agent_memory>' in second["draft"]
    assert backend.endpoints == ["/session/start", "/context", "/remember", "/session/end"] * 2


async def test_a_node_that_fails_is_remembered_and_its_error_passes_on(backend: Backend) -> None:
    async def write(_state: object) -> dict[str, str]:
        raise ValueError("no price")

    with pytest.raises(ValueError, match="no price"):
        await graph_of(backend, write, enabled=True).run(run_of())
    assert [entry["content"] for entry in backend.entries.values()] == ['Work "Shop" failed: no price']
    assert backend.open_sessions == []


async def test_a_graph_without_memory_has_its_own_nodes_only(backend: Backend) -> None:
    graph = graph_of(backend, example.write)
    await graph.run(run_of())
    assert [*graph.nodes] == ["write"]
    assert backend.requests == []


async def test_an_orchestrators_session_goes_through_the_graph(backend: Backend) -> None:
    await graph_of(backend, example.write, enabled=True).run(run_of(memory_session_id="theirs"))
    assert backend.endpoints == ["/context", "/remember"]
