"""Which provider answers for a caller, and how its errors reach the host (spec 1.3 and 4.2)."""

from typing import Any

import pytest
from agentmemory_server import FIXTURES, Backend
from lorebus.sessions.agentmemory import AgentMemoryProvider
from lorebus.sessions.errors import (
    AnswerUnreadable,
    BackendRefused,
    NoProvider,
    OperationNotSupported,
    ProviderFailed,
    ProviderNotFound,
    ProviderSettingsInvalid,
)
from lorebus.sessions.facade import Availability, MemoryFacade
from lorebus.sessions.null import NullProvider
from lorebus.sessions.records import (
    Context,
    ContextRequest,
    Health,
    Observation,
    Record,
    Search,
    SearchResponse,
    Session,
)
from lorebus.sessions.registry import BUILT_IN, Caller, HostSettings, Registration, choose, resolve_settings

backend_server, backend = FIXTURES

CALLER = Caller("u1", "w1")
A, B, C = (Registration(name, name.upper(), NullProvider) for name in "abc")


class Minimal:
    """A provider of a host's own, that can neither forget nor list."""

    name = "minimal"

    def __init__(self, settings: object) -> None:
        self.null = NullProvider()

    async def check_health(self) -> Health:
        return Health(is_connected=True)

    async def open_session(self, **fields: Any) -> Session:
        return await self.null.open_session(**fields)

    async def close_session(self, session_id: str, **fields: Any) -> None:
        await self.null.close_session(session_id, **fields)

    async def save(self, observation: Observation) -> Record:
        raise ValueError(f"cannot store {observation.content}")

    async def search(self, search: Search) -> SearchResponse:
        return SearchResponse()

    async def build_context(self, request: ContextRequest) -> Context:
        return Context("prior")


def facade_of(*registrations: Registration, **host: Any) -> MemoryFacade:
    async def read_settings(_caller: Caller) -> HostSettings:
        return HostSettings(**host)

    return MemoryFacade(registrations, read_settings)


MINIMAL = Registration("minimal", "Minimal", Minimal)


class TestResolution:
    def test_the_one_asked_for_wins(self) -> None:
        assert choose([A, B, C], HostSettings(active="a", default="b"), "c") is C

    @pytest.mark.parametrize("override", ["c", "z"], ids=["not enabled", "not loaded"])
    def test_one_asked_for_that_cannot_answer_is_an_error_and_not_replaced(self, override: str) -> None:
        with pytest.raises(ProviderNotFound, match=override):
            choose([A, B, C], HostSettings(enabled={"a", "b"}), override)

    def test_then_the_works_then_the_default_then_the_first(self) -> None:
        assert choose([A, B, C], HostSettings(active="c", default="b")) is C
        assert choose([A, B, C], HostSettings(default="b")) is B
        assert choose([A, B, C], HostSettings()) is A

    def test_only_enabled_ones_count(self) -> None:
        assert choose([A, B, C], HostSettings(active="a", default="a", enabled={"b", "c"})) is B

    def test_without_any_there_is_no_provider(self) -> None:
        with pytest.raises(NoProvider):
            choose([A], HostSettings(active="a", default="a", enabled=()))

    def test_settings_of_the_work_win_over_user_admin_and_default_key_by_key(self) -> None:
        registration = Registration("a", "A", NullProvider, {"w": 0, "u": 0, "m": 0, "d": 0})
        host = HostSettings(
            admin={"a": {"w": 1, "u": 1, "m": 1}, "b": {"d": 9}},
            user={"a": {"w": 2, "u": 2}},
            work={"a": {"w": 3, "u": None}},
        )
        assert resolve_settings(registration, host) == {"w": 3, "u": 2, "m": 1, "d": 0}

    async def test_the_resolved_settings_reach_the_provider(self, backend: Backend) -> None:
        work = {"agentmemory": {**backend.settings, "projectId": "of-the-work"}}
        await facade_of(*BUILT_IN, work=work, user={"agentmemory": {"projectId": "of-the-user"}}).save(
            CALLER, Observation("a")
        )
        assert backend.bodies("/remember")[0]["project"] == "of-the-work"

    async def test_a_host_switches_backends_by_settings_alone(self, backend: Backend) -> None:
        admin = {"agentmemory": backend.settings}
        for active in ("agentmemory", "null"):
            await facade_of(*BUILT_IN, admin=admin, active=active).save(CALLER, Observation(active))
        assert [body["content"] for body in backend.bodies("/remember")] == ["agentmemory"]


class TestAvailability:
    async def test_a_provider_is_told_by_id_and_name(self) -> None:
        assert await facade_of(A, B, active="b").check_availability(CALLER) == Availability(True, "b", "B")

    async def test_none_is_told_with_what_to_do(self) -> None:
        told = await facade_of(A, enabled=()).check_availability(CALLER)
        assert (told.is_available, told.provider_id, told.provider_name) == (False, None, None)
        assert "enable one" in (told.message or "")

    async def test_configured_means_loaded_whoever_enabled_it(self) -> None:
        assert facade_of(A, enabled=()).bind(CALLER).is_configured
        assert not facade_of().bind(CALLER).is_configured


class TestErrors:
    async def test_no_provider_is_not_wrapped(self) -> None:
        with pytest.raises(NoProvider):
            await facade_of().save(CALLER, Observation("a"))

    async def test_the_provider_asked_for_is_the_callers_to_know(self) -> None:
        with pytest.raises(ProviderNotFound):
            await facade_of(A).save(Caller("u1", provider="b"), Observation("a"))

    async def test_a_refusal_is_wrapped_with_operation_and_provider(self, backend: Backend) -> None:
        backend.scripted["/remember"] = (429, "the secret text")
        with pytest.raises(ProviderFailed, match=r"saveMemory with agentmemory failed: .*rate") as failed:
            await facade_of(*BUILT_IN, admin={"agentmemory": backend.settings}).save(CALLER, Observation("a"))
        assert (failed.value.operation, failed.value.provider) == ("saveMemory", "agentmemory")
        assert isinstance(failed.value.__cause__, BackendRefused)

    async def test_of_a_foreign_error_only_the_kind_is_told(self) -> None:
        with pytest.raises(ProviderFailed, match=r"saveMemory with minimal failed: ValueError$"):
            await facade_of(MINIMAL).save(CALLER, Observation("the secret text"))

    async def test_settings_that_cannot_be_used_are_the_providers_failure(self) -> None:
        with pytest.raises(ProviderFailed, match="openSession with agentmemory failed: baseUrl") as failed:
            await facade_of(*BUILT_IN, user={"agentmemory": {"baseUrl": "ftp://a"}}).open_session(CALLER)
        assert isinstance(failed.value.__cause__, ProviderSettingsInvalid)

    async def test_what_a_provider_lacks_is_not_supported(self) -> None:
        facade = facade_of(MINIMAL)
        with pytest.raises(OperationNotSupported, match="minimal does not support deleteEntry") as failed:
            await facade.forget(CALLER, "m")
        assert failed.value.operation == "deleteEntry"
        with pytest.raises(OperationNotSupported, match="minimal does not support listSessions"):
            await facade.list_sessions(CALLER)

    async def test_without_a_provider_listing_has_no_provider_rather_than_no_support(self) -> None:
        with pytest.raises(NoProvider):
            await facade_of().list_sessions(CALLER)

    async def test_each_operation_is_named(self, backend: Backend) -> None:
        for endpoint in ("/session/start", "/session/end", "/remember", "/smart-search", "/context", "/forget"):
            backend.scripted[endpoint] = (500, "")
        backend.scripted["/sessions"] = (500, "")
        memory = facade_of(*BUILT_IN, admin={"agentmemory": backend.settings}).bind(CALLER)
        named: list[str] = []
        for call in (
            memory.open_session(),
            memory.close_session("s"),
            memory.list_sessions(),
            memory.save(Observation("a")),
            memory.search(Search("a")),
            memory.build_context(ContextRequest()),
            memory.forget("m"),
        ):
            with pytest.raises(ProviderFailed) as failed:
                await call
            named.append(failed.value.operation)
        assert named == [
            "openSession", "closeSession", "listSessions", "saveMemory", "searchMemory", "buildContext", "deleteEntry",
        ]  # fmt: skip


class TestBoundMemory:
    async def test_settings_are_read_for_the_caller_that_was_bound(self) -> None:
        asked: list[Caller] = []

        async def read_settings(caller: Caller) -> HostSettings:
            asked.append(caller)
            return HostSettings()

        memory = MemoryFacade([MINIMAL], read_settings).bind(CALLER)
        await memory.close_session((await memory.open_session()).id)
        assert asked == [CALLER, CALLER]

    async def test_a_context_says_who_gave_it(self) -> None:
        context = await facade_of(MINIMAL).bind(CALLER).build_context(ContextRequest())
        assert context == Context("prior", provider="minimal")

    async def test_the_whole_loop_through_the_facade(self, backend: Backend) -> None:
        memory = facade_of(*BUILT_IN, admin={"agentmemory": backend.settings}).bind(CALLER)
        session = await memory.open_session(project_id="p", metadata={"source": "test"})
        saved = await memory.save(Observation("Prices are in cents.", session_id=session.id, project_id="p"))
        assert [one.id for one in (await memory.search(Search("cents", project_id="p"))).results] == [saved.id]
        await memory.forget(saved.id, project_id="p")
        await memory.close_session(session.id, project_id="p")
        assert [one.id for one in await memory.list_sessions(project_id="p", limit=5)] == [session.id]
        assert {body["project"] for body in (seen.body for seen in backend.requests) if body} == {"p"}


class TestNullProvider:
    async def test_it_takes_everything_and_finds_nothing(self) -> None:
        memory = facade_of(*BUILT_IN, active="null").bind(CALLER)
        session = await memory.open_session(metadata={"a": 1})
        saved = await memory.save(Observation("a", ["t"], {"k": 1}, session.id, "p"))
        assert (saved.content, saved.tags, saved.metadata) == ("a", ["t"], {"k": 1})
        assert (await memory.search(Search("*"))).results == ()
        assert (await memory.build_context(ContextRequest("a"))).content == ""
        assert await memory.list_sessions() == ()
        await memory.forget(saved.id)
        await memory.close_session(session.id)

    async def test_it_is_well_and_needs_no_settings(self) -> None:
        assert (await NullProvider({"baseUrl": "ftp://nonsense"}).check_health()).is_connected


async def test_without_any_setting_the_environment_says_where_the_memory_is(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTMEMORY_BASE_URL", backend.url)
    monkeypatch.setenv("AGENTMEMORY_PROJECT", "env")
    await MemoryFacade().save(CALLER, Observation("a"))
    assert backend.bodies("/remember") == [{"project": "env", "content": "a"}]


async def test_an_answer_that_cannot_be_read_is_the_providers_failure(backend: Backend) -> None:
    backend.scripted["/remember"] = (201, "{}")
    with pytest.raises(ProviderFailed, match="without an id") as failed:
        await facade_of(Registration("x", "X", lambda _: AgentMemoryProvider(backend.settings))).save(
            CALLER, Observation("a")
        )
    assert isinstance(failed.value.__cause__, AnswerUnreadable)
