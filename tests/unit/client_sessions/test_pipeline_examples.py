"""The examples of pipelines do what they say."""

import pytest
from agentmemory_server import FIXTURES, Backend
from lorebus.pipeline.context import RunContext
from lorebus.sessions.agentmemory import AgentMemoryProvider

from examples.pipelines import plain_functions

backend_server, backend = FIXTURES


async def test_plain_functions_start_with_what_the_run_before_left(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENTMEMORY_BASE_URL", backend.url)
    await plain_functions.main()
    first, second = capsys.readouterr().out.split("Task: List the products")[:2]
    assert "agent_memory" not in first
    assert '<agent_memory>\nWork "Shop" completed with 2 items.\n</agent_memory>' in second
    assert backend.open_sessions == []


async def test_plain_functions_of_a_work_without_memory_have_no_memory_steps(backend: Backend) -> None:
    pipeline = plain_functions.build_pipeline(AgentMemoryProvider(backend.settings), {})
    await pipeline.run(RunContext(plain_functions.SHOP, "List the products"))
    assert [step.id for step in pipeline.steps] == ["collect", "write"]
    assert backend.requests == []
