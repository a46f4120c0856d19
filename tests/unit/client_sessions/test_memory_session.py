"""A unit of work and its memory: one session, closed once, and never a failure of the host's."""

import asyncio
import contextlib
import logging
from typing import Any

import pytest
from agentmemory_server import FIXTURES, Backend, running_backend, said
from lorebus.sessions.agentmemory import AgentMemoryProvider
from lorebus.sessions.facade import MemoryFacade
from lorebus.sessions.null import NullProvider
from lorebus.sessions.records import Context, ContextRequest, Observation, Record, SearchResponse
from lorebus.sessions.registry import Caller
from lorebus.sessions.session import MemorySession
from lorebus.sessions.settings import is_recall_enabled

backend_server, backend = FIXTURES

SECRET = "the secret text"
OFF: dict[str, object] = {"memoryRecallEnabled": False}


def memory_of(backend: Backend) -> AgentMemoryProvider:
    return AgentMemoryProvider(backend.settings)


async def use_everything(session: MemorySession) -> list[object]:
    return [
        await session.save(SECRET),
        await session.search(SECRET),
        await session.build_context(SECRET),
        (await session.recall(SECRET)).text,
        await session.forget("m"),
    ]


NOTHING = [None, SearchResponse(), Context(), "", False]


class TestLifecycle:
    async def test_what_is_saved_and_asked_stands_under_one_session(self, backend: Backend) -> None:
        async with MemorySession(memory_of(backend), project_id="p", metadata={"source": "test"}) as session:
            await session.save("Prices are in cents.", tags=["pricing"])
            await session.build_context("prices", purpose="fix-bug", tokens_max=300)
            assert backend.open_sessions == [session.id] == ["ses-1"]
        assert backend.endpoints == ["/session/start", "/remember", "/context", "/session/end"]
        assert backend.bodies("/session/start") == [{"project": "p", "metadata": {"source": "test"}}]
        assert backend.bodies("/remember")[0]["sessionId"] == backend.bodies("/context")[0]["sessionId"] == "ses-1"
        assert backend.bodies("/session/end") == [{"project": "p", "sessionId": "ses-1"}]
        assert backend.open_sessions == []

    async def test_a_session_of_the_callers_is_neither_opened_nor_closed(self, backend: Backend) -> None:
        async with MemorySession(memory_of(backend), session_id="theirs") as session:
            await session.save("a")
        assert backend.endpoints == ["/remember"]
        assert backend.bodies("/remember")[0]["sessionId"] == "theirs"

    @pytest.mark.parametrize("error", [ValueError("a"), asyncio.CancelledError()], ids=["failed", "cancelled"])
    async def test_it_is_closed_however_the_work_ends(self, backend: Backend, error: BaseException) -> None:
        with pytest.raises(type(error)):
            async with MemorySession(memory_of(backend)):
                raise error
        assert backend.endpoints == ["/session/start", "/session/end"]

    async def test_it_is_closed_when_the_works_task_is_cancelled(self, backend: Backend) -> None:
        entered = asyncio.Event()

        async def work() -> None:
            async with MemorySession(memory_of(backend)):
                entered.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await entered.wait()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert backend.open_sessions == []

    async def test_opening_and_closing_again_does_nothing(self, backend: Backend) -> None:
        session = MemorySession(memory_of(backend))
        await session.open()
        await session.open()
        await asyncio.gather(session.close(), session.close())
        await session.close()
        assert backend.endpoints == ["/session/start", "/session/end"]
        assert session.id == "ses-1"

    async def test_where_none_can_be_opened_the_work_goes_on_and_no_id_is_sent(self, backend: Backend) -> None:
        backend.scripted["/session/start"] = (500, "")
        async with MemorySession(memory_of(backend)) as session:
            assert session.id is None
            assert await session.save("a") is not None
            await session.search("a")
            await session.build_context("a")
        assert backend.endpoints == ["/session/start", "/remember", "/smart-search", "/context"]
        assert all("sessionId" not in (seen.body or {}) for seen in backend.requests)

    async def test_a_close_that_fails_harms_nobody(self, backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
        backend.scripted["/session/end"] = (500, "")
        async with MemorySession(memory_of(backend)):
            pass
        assert said(caplog) == ["memory, closeSession: /agentmemory/session/end answered 500"]


class TestSearch:
    async def test_the_whole_project_is_searched_under_the_sessions_id(self, backend: Backend) -> None:
        async with MemorySession(memory_of(backend)) as first:
            await first.save("cents of old")
        async with MemorySession(memory_of(backend)) as second:
            await second.save("cents of now", tags=["t"])
            assert len((await second.search("cents")).results) == 2
            assert [one.content for one in (await second.search("*", tags=["t", "u"])).results] == ["cents of now"]
            assert len((await second.search("*", limit=1)).results) == 1
        assert {body["sessionId"] for body in backend.bodies("/smart-search")} == {"ses-2"}

    async def test_what_is_forgotten_is_gone(self, backend: Backend) -> None:
        async with MemorySession(memory_of(backend)) as session:
            saved = await session.save("a")
            assert saved is not None
            assert await session.forget(saved.id)
            assert (await session.search("*")).results == []


class TestRecall:
    async def test_what_is_remembered_comes_between_fences(
        self, backend: Backend, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "lorebus")
        async with MemorySession(memory_of(backend)) as session:
            await session.save(f"{SECRET}</agent_memory>")
            block = await session.recall("text")
        assert block.outcome == "injected"
        assert f"<agent_memory>\n{SECRET}&lt;/agent_memory>\n</agent_memory>" in block.text
        assert "memory-recall: status=injected chars=" in caplog.text
        assert SECRET not in caplog.text

    async def test_nothing_found_is_said_inside_the_fence(self, backend: Backend) -> None:
        block = await MemorySession(memory_of(backend)).recall("a")
        assert block.outcome == "empty"
        assert "<agent_memory>\n(Nothing is remembered about this yet.)\n</agent_memory>" in block.text

    async def test_a_memory_that_failed_puts_nothing_into_the_prompt(self, backend: Backend) -> None:
        backend.scripted["/context"] = (500, SECRET)
        block = await MemorySession(memory_of(backend)).recall("a")
        assert (block.outcome, block.text) == ("failed", "")

    @pytest.mark.parametrize("memory", [None, MemoryFacade(()).bind(Caller("u"))], ids=["no facade", "no provider"])
    async def test_without_a_provider_nothing_is_put_into_the_prompt(self, memory: Any) -> None:
        block = await MemorySession(memory).recall("a")
        assert (block.outcome, block.text) == ("no-provider", "")

    async def test_a_recall_that_is_off_asks_nothing_and_leaves_the_rest_on(
        self, backend: Backend, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "lorebus")
        recalls = is_recall_enabled(OFF, {})
        async with MemorySession(memory_of(backend), recalls=recalls) as session:
            block = await session.recall("a")
            assert await session.save("b") is not None
        assert (block.outcome, block.text) == ("off", "")
        assert backend.calls("/context") == []
        assert "memory-recall: status=off" in caplog.text

    @pytest.mark.parametrize(
        ("agent", "work", "is_on"),
        [({}, {}, True), (OFF, {}, False), ({}, OFF, False), ({"memoryRecallEnabled": True}, {}, True)],
        ids=["neither", "agent", "work", "on"],
    )
    def test_recall_is_on_unless_the_agent_or_the_work_says_false(
        self, agent: dict[str, object], work: dict[str, object], is_on: bool
    ) -> None:
        assert is_recall_enabled(agent, work) == is_on


class TestNeverAFailure:
    async def test_a_backend_that_is_down_costs_warnings_only(
        self, free_port: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        down = AgentMemoryProvider({"baseUrl": f"http://127.0.0.1:{free_port}"})
        async with MemorySession(down) as session:
            assert await use_everything(session) == NOTHING
        assert len(said(caplog)) == 5
        assert SECRET not in caplog.text

    async def test_a_backend_that_dies_on_the_way_costs_warnings_only(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            backend_server = await stack.enter_async_context(running_backend())
            session = MemorySession(memory_of(backend_server.backend))
            await session.open()
            assert await session.save("a") is not None
        assert await use_everything(session) == NOTHING
        await session.close()

    async def test_the_same_failure_is_logged_once(self, backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
        backend.scripted["/remember"] = (500, "")
        async with MemorySession(memory_of(backend)) as session:
            for _ in range(20):
                assert await session.save("a") is None
        assert said(caplog) == ["memory, saveMemory: /agentmemory/remember answered 500"]

    async def test_no_provider_is_no_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG, "lorebus")
        async with MemorySession(MemoryFacade(()).bind(Caller("u"))) as session:
            assert await use_everything(session) == NOTHING
        assert said(caplog) == []
        assert "no memory provider is enabled" in caplog.text

    async def test_no_memory_at_all_is_silent(self, caplog: pytest.LogCaptureFixture) -> None:
        async with MemorySession(None) as session:
            assert session.id is None
            assert await use_everything(session) == NOTHING
        assert said(caplog) == []

    async def test_a_backend_that_hangs_is_left_after_the_sessions_own_timeout(self, backend: Backend) -> None:
        backend.hanging |= {"/session/start", "/remember", "/smart-search", "/context", "/forget"}
        async with asyncio.timeout(10), MemorySession(memory_of(backend), timeout_seconds=0.05) as session:
            assert await use_everything(session) == NOTHING

    async def test_a_provider_that_takes_no_cancellation_is_left_too(self) -> None:
        released = asyncio.Event()

        class Stubborn(NullProvider):
            async def save(self, observation: Observation) -> Record:
                while not released.is_set():
                    with contextlib.suppress(asyncio.CancelledError):
                        await released.wait()
                return await super().save(observation)

        async with asyncio.timeout(10):
            assert await MemorySession(Stubborn(), timeout_seconds=0.05).save("a") is None
        released.set()

    @pytest.mark.parametrize(
        "error",
        [ValueError(SECRET), RecursionError(SECRET), asyncio.CancelledError(SECRET)],
        ids=lambda e: type(e).__name__,
    )
    async def test_whatever_a_provider_raises_stays_out_of_the_host_and_its_text_out_of_the_log(
        self, error: BaseException, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Raising(NullProvider):
            async def build_context(self, request: ContextRequest) -> Context:
                raise error

        assert await MemorySession(Raising()).build_context("a") == Context()
        assert said(caplog) == [f"memory, buildContext: {type(error).__name__}"]
        assert SECRET not in caplog.text

    async def test_a_provider_that_gives_nothing_at_all_is_as_one_that_failed(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Untyped(NullProvider):
            async def build_context(self, request: ContextRequest) -> Any:
                return None

        assert (await MemorySession(Untyped()).recall("a")).outcome == "failed"
        assert said(caplog) == ["memory, buildContext: the provider gave a NoneType for a Context"]

    async def test_the_hosts_own_cancellation_passes_through(self, backend: Backend) -> None:
        backend.hanging.add("/remember")
        saving = asyncio.create_task(MemorySession(memory_of(backend)).save("a"))
        await backend.reached.wait()
        saving.cancel()
        await asyncio.wait({saving})
        assert saving.cancelled()
