"""Pipelines with modifiers: who is in, in which order, and who hears of a failure."""

import asyncio
import logging
from collections.abc import Sequence

import pytest
from agentmemory_server import FIXTURES, Backend, said
from lorebus.pipeline.context import RunContext, Work
from lorebus.pipeline.hooks import Build, PipelineModifier, StepDefinition, collect_hooks
from lorebus.pipeline.modifier import MODIFIER_ID, MemoryModifier
from lorebus.pipeline.runner import Pipeline, Step
from lorebus.sessions.agentmemory import AgentMemoryProvider

backend_server, backend = FIXTURES

ON = {MODIFIER_ID: {"enabled": True}}


class Recorder:
    """A modifier of the host's own, which is its hooks as well; keeps what it is told."""

    targets = ("standard-pipeline",)

    def __init__(self, name: str, told: list[str], fault: Exception | None = None) -> None:
        self.id = name
        self.told = told
        self.fault = fault
        self.steps: Sequence[StepDefinition] = [
            StepDefinition(f"{name}-end", "", "last"),
            StepDefinition(f"{name}-start", "", "first"),
        ]

    def can_skip_at_build_time(self, build: Build) -> bool:
        if build.settings_of(self.id).get("broken"):
            raise ValueError("cannot tell")
        return build.settings_of(self.id).get("skip") is True

    def build_hooks(self, build: Build) -> "Recorder":
        return self

    async def execute(self, step_id: str, context: RunContext) -> RunContext:
        self.told.append(step_id)
        if self.fault:
            raise self.fault
        return context

    async def rollback(self, context: RunContext, error: BaseException) -> None:
        self.told.append(f"{self.id} rolls back after {error}")
        if self.fault:
            raise self.fault


def run_of(**fields: str) -> RunContext:
    return RunContext(Work("w1", "shop", "Shop"), **fields)


async def write(context: RunContext) -> None:
    context.item_count = 3


async def break_down(_context: RunContext) -> None:
    raise ValueError("no price")


def pipeline_of(
    steps: Sequence[Step[RunContext]], modifiers: Sequence[PipelineModifier[RunContext]], build: Build
) -> Pipeline[RunContext]:
    return Pipeline(steps, collect_hooks(modifiers, build))


def memory_pipeline(
    backend: Backend, *steps: Step[RunContext], name: str = "standard-pipeline"
) -> Pipeline[RunContext]:
    return pipeline_of(steps, [MemoryModifier(AgentMemoryProvider(backend.settings))], Build(name, ON))


class TestBuilding:
    def test_the_steps_of_modifiers_stand_first_and_last(self) -> None:
        told: list[str] = []
        pipeline = pipeline_of(
            [Step("write", write)], [Recorder("a", told), Recorder("b", told)], Build("standard-pipeline")
        )
        assert [step.id for step in pipeline.steps] == ["a-start", "b-start", "write", "a-end", "b-end"]

    @pytest.mark.parametrize("settings", [{}, {MODIFIER_ID: {"enabled": False}}], ids=["missing", "false"])
    def test_a_memory_that_is_off_leaves_no_trace(
        self, backend: Backend, settings: dict[str, dict[str, object]]
    ) -> None:
        own = [Step("write", write)]
        modifier = MemoryModifier[RunContext](AgentMemoryProvider(backend.settings))
        assert pipeline_of(own, [modifier], Build("standard-pipeline", settings)).steps == own

    @pytest.mark.parametrize(("name", "count"), [("standard-pipeline", 3), ("agent-pipeline", 3), ("claude-code", 1)])
    def test_only_targeted_pipelines_get_the_steps(self, backend: Backend, name: str, count: int) -> None:
        assert len(memory_pipeline(backend, Step("write", write), name=name).steps) == count

    def test_a_host_names_pipelines_of_its_own(self, backend: Backend) -> None:
        modifier = MemoryModifier[RunContext](AgentMemoryProvider(backend.settings), targets=["nightly"])
        assert len(pipeline_of([], [modifier], Build("nightly", ON)).steps) == 2

    def test_a_modifier_that_cannot_tell_is_kept_with_a_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        build = Build("standard-pipeline", {"a": {"broken": True}, "b": {"skip": True}})
        pipeline = pipeline_of([], [Recorder("a", []), Recorder("b", [])], build)
        assert [step.id for step in pipeline.steps] == ["a-start", "a-end"]
        assert said(caplog) == ["a: cannot tell whether it can be skipped: ValueError"]


class TestRunning:
    async def test_enabled_through_settings_alone_a_digest_really_is_saved(self, backend: Backend) -> None:
        await memory_pipeline(backend, Step("write", write)).run(run_of())
        assert [entry["content"] for entry in backend.entries.values()] == ['Work "Shop" completed with 3 items.']
        assert backend.open_sessions == []

    async def test_the_next_run_starts_with_what_the_first_one_learned(self, backend: Backend) -> None:
        pipeline = memory_pipeline(backend, Step("write", write))
        first, second = await pipeline.run(run_of()), await pipeline.run(run_of())
        assert first.memory_block == ""
        assert 'Work "Shop" completed with 3 items.' in second.memory_block

    async def test_settings_that_change_after_the_building_change_nothing(self, backend: Backend) -> None:
        settings: dict[str, object] = {"enabled": True}
        modifier = MemoryModifier[RunContext](AgentMemoryProvider(backend.settings))
        pipeline = pipeline_of([], [modifier], Build("standard-pipeline", {MODIFIER_ID: settings}))
        settings["enabled"] = False
        await pipeline.run(run_of())
        assert len(backend.entries) == 1

    async def test_a_failed_run_is_remembered_and_its_error_passes_on(self, backend: Backend) -> None:
        with pytest.raises(ValueError, match="no price"):
            await memory_pipeline(backend, Step("write", write), Step("sell", break_down)).run(run_of())
        [entry] = backend.entries.values()
        assert entry["content"] == 'Work "Shop" failed (3 items): no price'
        assert backend.endpoints == ["/session/start", "/context", "/remember", "/session/end"]

    async def test_a_cancelled_run_is_remembered_and_stays_cancelled(self, backend: Backend) -> None:
        reached = asyncio.Event()

        async def hang(_context: RunContext) -> None:
            reached.set()
            await asyncio.Event().wait()

        running = asyncio.create_task(memory_pipeline(backend, Step("hang", hang)).run(run_of()))
        await reached.wait()
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled()
        [entry] = backend.entries.values()
        assert entry["tags"] == ["pipeline-run", "cancelled", "work:shop"]
        assert backend.open_sessions == []

    async def test_an_orchestrators_session_goes_through_the_pipeline(self, backend: Backend) -> None:
        await memory_pipeline(backend, Step("write", write)).run(run_of(memory_session_id="theirs"))
        assert backend.endpoints == ["/context", "/remember"]

    async def test_a_backend_that_is_down_costs_warnings_only(
        self, free_port: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        down = Backend(f"http://127.0.0.1:{free_port}")
        context = await memory_pipeline(down, Step("write", write)).run(run_of())
        assert context.item_count == 3
        assert len(said(caplog)) == 3
        assert said(caplog, logging.ERROR) == []

    async def test_an_optional_step_that_fails_starts_no_rollback(self, caplog: pytest.LogCaptureFixture) -> None:
        told: list[str] = []
        recorder = Recorder("a", told, ValueError("the secret text"))
        await pipeline_of([Step("write", write)], [recorder], Build("standard-pipeline")).run(run_of())
        assert told == ["a-start", "a-end"]
        assert "the secret text" not in caplog.text

    async def test_every_modifier_hears_of_a_failure_and_none_can_hide_it(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        told: list[str] = []
        modifiers = [Recorder("a", told, RuntimeError("a is broken")), Recorder("b", told)]
        pipeline = pipeline_of([Step("sell", break_down)], modifiers, Build("standard-pipeline"))
        with pytest.raises(ValueError, match="no price"):
            await pipeline.run(run_of())
        assert told[2:] == ["a rolls back after no price", "b rolls back after no price"]
        assert "memory, rollback: RuntimeError" in said(caplog)

    async def test_a_step_may_give_another_context(self) -> None:
        async def replace(_context: RunContext) -> RunContext:
            return run_of(prompt="another")

        assert (await Pipeline([Step("replace", replace), Step("write", write)]).run(run_of())).prompt == "another"
