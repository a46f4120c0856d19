"""A scheduled run of a Work: its summary is kept in a session of its own and found by the runs after it (spec 2.2)."""

from agentmemory_server import FIXTURES, Backend
from lorebus.sessions.agentmemory import AgentMemoryProvider
from lorebus.sessions.work_run import WorkRunDetails, find_summaries, keep_summary

backend_server, backend = FIXTURES

DETAILS = WorkRunDetails("w1", "Shop", "shop", "website", schedule_id="s1")


async def test_a_summary_is_saved_in_a_session_that_is_closed(backend: Backend) -> None:
    record = await keep_summary(AgentMemoryProvider(backend.settings), DETAILS, "Twelve items were made.")
    assert record is not None
    assert backend.endpoints == ["/session/start", "/remember", "/session/end"]
    assert backend.bodies("/session/start")[0]["metadata"] == {
        "source": "work-run",
        "workId": "w1",
        "workName": "Shop",
        "workSlug": "shop",
        "workKind": "website",
        "scheduleId": "s1",
    }
    assert backend.bodies("/remember")[0]["tags"] == ["work-run", "work:w1", "kind:website"]


async def test_a_save_that_fails_leaves_no_session_open(backend: Backend) -> None:
    backend.scripted["/remember"] = (500, "")
    assert await keep_summary(AgentMemoryProvider(backend.settings), DETAILS, "Nothing was made.") is None
    assert backend.open_sessions == []


async def test_the_last_ten_summaries_of_a_work_are_found_by_its_tag(backend: Backend) -> None:
    provider = AgentMemoryProvider(backend.settings)
    for number in range(12):
        await keep_summary(provider, DETAILS, f"Run {number}.")
    await keep_summary(provider, WorkRunDetails("w2", "Blog", "blog", "website"), "Another Work's run.")
    found = await find_summaries(provider, "w1")
    assert [record.content for record in found] == [f"Run {number}." for number in range(11, 1, -1)]


async def test_where_the_memory_fails_or_is_none_no_summary_is_found(backend: Backend) -> None:
    backend.scripted["/smart-search"] = (500, "")
    assert await find_summaries(AgentMemoryProvider(backend.settings), "w1") == ()
    assert await find_summaries(None, "w1") == ()
