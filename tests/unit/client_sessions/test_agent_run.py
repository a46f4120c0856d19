"""A run of an agent: its session is opened, kept with the run and closed; none of it can fail the run (spec 2.1)."""

import asyncio
import logging
from typing import Any

import pytest
from agentmemory_server import FIXTURES, Backend, said
from lorebus.sessions.facade import MemoryFacade
from lorebus.sessions.registry import BUILT_IN, Caller, HostSettings
from lorebus.sessions.run import AgentRun, RunDetails

backend_server, backend = FIXTURES

DETAILS = RunDetails("r1", "a1", "Planner", "schedule")


class Runs:
    """The host's table of runs."""

    def __init__(self) -> None:
        self.memory_session_ids: list[str] = []

    async def keep(self, session_id: str) -> None:
        self.memory_session_ids.append(session_id)


class Host:
    """A facade whose settings lead to the backend; remembers on whose behalf it was asked."""

    def __init__(self, backend: Backend, enabled: Any = None) -> None:
        self.asked: list[Caller] = []
        self._settings = HostSettings(enabled=enabled, admin={"agentmemory": backend.settings})
        self.facade = MemoryFacade(BUILT_IN, self._read_settings)

    async def _read_settings(self, caller: Caller) -> HostSettings:
        self.asked.append(caller)
        return self._settings


async def test_on_success_it_is_opened_kept_and_closed(backend: Backend) -> None:
    runs = Runs()
    async with AgentRun(Host(backend).facade.bind(Caller("u1")), DETAILS, runs.keep) as run:
        assert runs.memory_session_ids == [run.memory_session_id] == ["ses-1"]
        assert backend.open_sessions == ["ses-1"]
    assert backend.endpoints == ["/session/start", "/session/end"]
    assert run.memory_session_id == "ses-1"


async def test_the_session_tells_of_the_run(backend: Backend) -> None:
    details = RunDetails("r1", "a1", "Planner", "chat", task_id="t1", chat_message_id="c1")
    for one in (DETAILS, details):
        async with AgentRun(Host(backend).facade.bind(Caller("u1")), one, Runs().keep):
            pass
    told = {"runId": "r1", "agentId": "a1", "agentName": "Planner"}
    assert [body["metadata"] for body in backend.bodies("/session/start")] == [
        {**told, "triggerKind": "schedule"},
        {**told, "triggerKind": "chat", "taskId": "t1", "chatMessageId": "c1"},
    ]


async def test_an_agent_whose_recall_is_off_is_given_nothing(backend: Backend) -> None:
    async with AgentRun(Host(backend).facade.bind(Caller("u1")), DETAILS, Runs().keep, recalls=False) as run:
        assert (await run.session.recall("a")).text == ""
    assert backend.endpoints == ["/session/start", "/session/end"]


async def test_what_the_run_saves_stands_in_its_session(backend: Backend) -> None:
    async with AgentRun(Host(backend).facade.bind(Caller("u1")), DETAILS, Runs().keep, project_id="p") as run:
        await run.session.save("a")
    [saved] = backend.bodies("/remember")
    assert (saved["sessionId"], saved["project"]) == ("ses-1", "p")


@pytest.mark.parametrize("error", [ValueError("a"), asyncio.CancelledError()], ids=["failed", "cancelled"])
async def test_a_run_that_fails_or_is_cancelled_closes_too(backend: Backend, error: BaseException) -> None:
    with pytest.raises(type(error)):
        async with AgentRun(Host(backend).facade.bind(Caller("u1")), DETAILS, Runs().keep):
            raise error
    assert backend.open_sessions == []
    assert backend.endpoints == ["/session/start", "/session/end"]


@pytest.mark.parametrize("work_id", ["w1", None], ids=["with a work", "without"])
async def test_opening_and_closing_are_asked_for_the_same_work(backend: Backend, work_id: str | None) -> None:
    host = Host(backend)
    async with AgentRun(host.facade.bind(Caller("u1", work_id)), DETAILS, Runs().keep):
        pass
    assert host.asked == [Caller("u1", work_id)] * 2


async def test_a_cancellation_from_elsewhere_closes_without_a_place_to_leave(backend: Backend) -> None:
    run = AgentRun(Host(backend).facade.bind(Caller("u1")), DETAILS, Runs().keep)
    await run.open()
    await asyncio.gather(run.close(), run.close())
    assert backend.endpoints == ["/session/start", "/session/end"]


async def test_without_a_provider_the_run_goes_on_in_silence(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    runs = Runs()
    async with AgentRun(Host(backend, enabled=()).facade.bind(Caller("u1")), DETAILS, runs.keep) as run:
        assert run.memory_session_id is None
    assert runs.memory_session_ids == backend.endpoints == []
    assert said(caplog, logging.INFO) == []


async def test_any_other_error_of_opening_is_a_warning_and_the_run_goes_on(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    backend.scripted["/session/start"] = (500, "")
    runs = Runs()
    async with AgentRun(Host(backend).facade.bind(Caller("u1")), DETAILS, runs.keep) as run:
        assert run.memory_session_id is None
    assert runs.memory_session_ids == []
    assert backend.endpoints == ["/session/start"]
    assert len(said(caplog)) == 1


async def test_an_id_that_cannot_be_kept_is_a_warning_and_the_session_is_used_and_closed(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    async def keep(_session_id: str) -> None:
        raise ConnectionError("the database is away")

    async with AgentRun(Host(backend).facade.bind(Caller("u1")), DETAILS, keep) as run:
        assert await run.session.save("a") is not None
    assert backend.endpoints == ["/session/start", "/remember", "/session/end"]
    assert said(caplog) == ["memory, keepSessionId: ConnectionError"]


async def test_a_run_that_is_cancelled_while_its_id_is_kept_closes_its_session(backend: Backend) -> None:
    keeping = asyncio.Event()

    async def keep(_session_id: str) -> None:
        keeping.set()
        await asyncio.Event().wait()

    async def work() -> None:
        async with AgentRun(Host(backend).facade.bind(Caller("u1")), DETAILS, keep):
            raise AssertionError("the run began")

    task = asyncio.create_task(work())
    await keeping.wait()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert backend.endpoints == ["/session/start", "/session/end"]


async def test_a_close_that_fails_is_a_warning(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    backend.scripted["/session/end"] = (500, "")
    async with AgentRun(Host(backend).facade.bind(Caller("u1")), DETAILS, Runs().keep):
        pass
    assert len(said(caplog)) == 1


async def test_without_a_facade_everything_is_a_no_op(caplog: pytest.LogCaptureFixture) -> None:
    runs = Runs()
    async with AgentRun(None, DETAILS, runs.keep) as run:
        assert await run.session.save("a") is None
    assert (run.memory_session_id, runs.memory_session_ids, said(caplog)) == (None, [], [])
