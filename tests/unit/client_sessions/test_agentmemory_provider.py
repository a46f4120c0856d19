"""What the provider sends to a backend and takes from it (spec 5 and 8), over real HTTP."""

import json

import pytest
from agentmemory_server import FIXTURES, Backend, Seen
from lorebus.errors import InvalidMessage
from lorebus.sessions.agentmemory import AgentMemoryProvider
from lorebus.sessions.errors import AnswerUnreadable, BackendRefused, BackendTimedOut
from lorebus.sessions.records import ContextRequest, Observation, Search

backend_server, backend = FIXTURES


@pytest.fixture
def provider(backend: Backend) -> AgentMemoryProvider:
    return AgentMemoryProvider(backend.settings)


def script(backend: Backend, endpoint: str, answer: object, status: int = 200) -> None:
    backend.scripted[endpoint] = (status, answer if isinstance(answer, str) else json.dumps(answer))


async def only_call(backend: Backend) -> Seen:
    [seen] = backend.requests
    return seen


class TestRequests:
    async def test_a_trailing_slash_is_cut(self, backend: Backend) -> None:
        await AgentMemoryProvider({"baseUrl": f"{backend.url}/"}).check_health()
        assert (await only_call(backend)).path == "/agentmemory/health"

    async def test_a_path_of_the_base_url_stands_before_every_call(self, backend: Backend) -> None:
        await AgentMemoryProvider({"baseUrl": f"{backend.url}/behind/proxy/"}).check_health()
        assert (await only_call(backend)).path == "/behind/proxy/agentmemory/health"

    async def test_the_key_is_a_bearer_token(self, backend: Backend) -> None:
        backend.secret = "k-1"
        session = await AgentMemoryProvider({**backend.settings, "apiKey": "k-1"}).open_session()
        assert (await only_call(backend)).headers["authorization"] == "Bearer k-1"
        assert session.id == "ses-1"

    async def test_without_a_key_no_authorization_is_sent(
        self, backend: Backend, provider: AgentMemoryProvider
    ) -> None:
        await provider.check_health()
        assert "authorization" not in (await only_call(backend)).headers

    async def test_a_body_is_named_json_and_a_question_accepts_it(
        self, backend: Backend, provider: AgentMemoryProvider
    ) -> None:
        await provider.close_session("s")
        await provider.check_health()
        closing, asking = backend.requests
        assert (closing.headers["content-type"], closing.headers["accept"]) == ("application/json", "application/json")
        assert "content-type" not in asking.headers

    async def test_the_project_is_always_sent(self, backend: Backend, provider: AgentMemoryProvider) -> None:
        await provider.open_session()
        await provider.close_session("s")
        await provider.save(Observation("a"))
        await provider.search(Search("a"))
        await provider.build_context(ContextRequest())
        await provider.forget("m")
        assert [(seen.body or {})["project"] for seen in backend.requests] == ["shop"] * 6

    async def test_the_project_of_a_call_wins_on_every_call(
        self, backend: Backend, provider: AgentMemoryProvider
    ) -> None:
        await provider.open_session(project_id="p")
        await provider.close_session("s", project_id="p")
        await provider.save(Observation("a", project_id="p"))
        await provider.search(Search("a", project_id="p"))
        await provider.build_context(ContextRequest(project_id="p"))
        await provider.forget("m", project_id="p")
        assert [(seen.body or {})["project"] for seen in backend.requests] == ["p"] * 6

    async def test_save_goes_to_remember_and_what_is_not_given_is_absent(
        self, backend: Backend, provider: AgentMemoryProvider
    ) -> None:
        await provider.save(Observation("a"))
        assert backend.endpoints == ["/remember"]
        assert backend.bodies("/remember") == [{"project": "shop", "content": "a"}]

    async def test_save_sends_tags_metadata_and_session(self, backend: Backend, provider: AgentMemoryProvider) -> None:
        await provider.save(Observation("a", ["t"], {"n": [1, None]}, "s"))
        assert backend.bodies("/remember") == [
            {"project": "shop", "content": "a", "tags": ["t"], "metadata": {"n": [1, None]}, "sessionId": "s"}
        ]

    async def test_the_limit_is_sent_as_top_k(self, backend: Backend, provider: AgentMemoryProvider) -> None:
        await provider.search(Search("a", 7, ["t"], "s"))
        assert backend.bodies("/smart-search") == [
            {"project": "shop", "query": "a", "topK": 7, "tags": ["t"], "sessionId": "s"}
        ]

    async def test_the_tokens_are_sent_as_token_budget(self, backend: Backend, provider: AgentMemoryProvider) -> None:
        await provider.build_context(ContextRequest("q", "fix-bug", "s", "p", 1_500))
        assert backend.bodies("/context") == [
            {"project": "p", "query": "q", "purpose": "fix-bug", "sessionId": "s", "tokenBudget": 1_500}
        ]

    async def test_forgetting_names_the_id_in_a_filter(self, backend: Backend, provider: AgentMemoryProvider) -> None:
        await provider.forget("m-1")
        assert backend.bodies("/forget") == [{"project": "shop", "filter": {"id": "m-1"}}]

    @pytest.mark.parametrize("entry_id", ["", "  "], ids=["empty", "blank"])
    async def test_an_empty_id_is_refused_before_it_is_sent(
        self, backend: Backend, provider: AgentMemoryProvider, entry_id: str
    ) -> None:
        with pytest.raises(InvalidMessage, match="without an id"):
            await provider.forget(entry_id)
        assert backend.requests == []

    async def test_listing_asks_by_query_string(self, backend: Backend, provider: AgentMemoryProvider) -> None:
        await provider.list_sessions(project_id="a b&c", limit=5)
        assert (await only_call(backend)).query == {"limit": "5", "projectId": "a b&c"}

    async def test_texts_of_any_script_arrive_whole(self, backend: Backend, provider: AgentMemoryProvider) -> None:
        text = "Größe \u2028 \U0001f600 \r\n\x00"
        saved = await provider.save(Observation(text))
        assert backend.bodies("/remember")[0]["content"] == saved.content == text


class TestHealth:
    @pytest.mark.parametrize(
        "answer", [{"ok": True}, {"status": "ok"}, {"status": "OK"}, {"ok": True, "status": "degraded"}], ids=json.dumps
    )
    async def test_ok_is_connected(self, backend: Backend, provider: AgentMemoryProvider, answer: object) -> None:
        script(backend, "/health", answer)
        assert (await provider.check_health()).is_connected

    @pytest.mark.parametrize(
        "answer", [{"status": "healthy"}, {"ok": "true"}, {"ok": False}, {}, [], "fine", ""], ids=json.dumps
    )
    async def test_any_other_answer_is_not(
        self, backend: Backend, provider: AgentMemoryProvider, answer: object
    ) -> None:
        script(backend, "/health", answer)
        health = await provider.check_health()
        assert not health.is_connected
        assert health.message

    async def test_a_backend_whose_store_is_down_is_not(self, backend: Backend, provider: AgentMemoryProvider) -> None:
        script(backend, "/health", {"status": "ok"}, status=503)
        assert not (await provider.check_health()).is_connected

    async def test_a_backend_that_is_away_is_told_and_does_not_raise(self, free_port: int) -> None:
        health = await AgentMemoryProvider({"baseUrl": f"http://127.0.0.1:{free_port}"}).check_health()
        assert not health.is_connected
        assert "cannot be reached" in health.message


class TestAnswers:
    @pytest.mark.parametrize("name", ["id", "sessionId", "session_id"])
    async def test_a_session_is_known_by_any_of_its_ids(
        self, backend: Backend, provider: AgentMemoryProvider, name: str
    ) -> None:
        script(backend, "/session/start", {name: "s-1", "started_at": "2026-11-30T10:00:00Z", "recall": "prior"})
        session = await provider.open_session(metadata={"runId": "r"})
        assert (session.id, session.context, session.metadata) == ("s-1", "prior", {"runId": "r"})
        assert session.started_at.isoformat() == "2026-11-30T10:00:00+00:00"

    @pytest.mark.parametrize("answer", [{"session": {"id": "s"}}, {"id": ""}, {"id": 7}, {}, "ok", ""], ids=json.dumps)
    async def test_a_session_without_an_id_is_unreadable(
        self, backend: Backend, provider: AgentMemoryProvider, answer: object
    ) -> None:
        script(backend, "/session/start", answer)
        with pytest.raises(AnswerUnreadable, match="a session without an id"):
            await provider.open_session()

    @pytest.mark.parametrize("name", ["id", "observationId", "observation_id", "memoryId", "memory_id"])
    async def test_a_record_is_known_by_any_of_its_ids_and_filled_from_the_request(
        self, backend: Backend, provider: AgentMemoryProvider, name: str
    ) -> None:
        script(backend, "/remember", {name: "m-1"})
        saved = await provider.save(Observation("a", ["t"], {"k": 1}, "s", "p"))
        assert (saved.id, saved.content, saved.tags, saved.metadata) == ("m-1", "a", ["t"], {"k": 1})
        assert (saved.session_id, saved.project_id, saved.score) == ("s", "p", None)

    async def test_a_record_without_an_id_is_unreadable(self, backend: Backend, provider: AgentMemoryProvider) -> None:
        script(backend, "/remember", {"success": True, "memory": {"id": "m"}}, status=201)
        with pytest.raises(AnswerUnreadable, match="a record without an id"):
            await provider.save(Observation("a"))

    @pytest.mark.parametrize("name", ["results", "matches", "hits"])
    async def test_results_matches_and_hits_are_taken(
        self, backend: Backend, provider: AgentMemoryProvider, name: str
    ) -> None:
        script(backend, "/smart-search", {name: [{"id": "m", "text": "a", "similarity": 0.25}], "digest": "one"})
        found = await provider.search(Search("a"))
        assert [(one.id, one.content, one.score) for one in found.results] == [("m", "a", 0.25)]
        assert found.summary == "one"

    async def test_one_result_without_an_id_fails_the_search(
        self, backend: Backend, provider: AgentMemoryProvider
    ) -> None:
        script(backend, "/smart-search", {"results": [{"id": "m"}, {"obsId": "n"}]})
        with pytest.raises(AnswerUnreadable):
            await provider.search(Search("a"))

    @pytest.mark.parametrize("name", ["content", "context", "text"])
    async def test_the_context_is_taken_by_any_of_its_names(
        self, backend: Backend, provider: AgentMemoryProvider, name: str
    ) -> None:
        script(backend, "/context", {name: "prior", "approx_tokens": 3, "references": [{"memoryId": "m"}]})
        context = await provider.build_context(ContextRequest())
        assert (context.content, context.tokens_approximate) == ("prior", 3)
        assert [one.id for one in context.references] == ["m"]

    async def test_a_reference_without_an_id_fails_the_context(
        self, backend: Backend, provider: AgentMemoryProvider
    ) -> None:
        script(backend, "/context", {"content": "prior", "references": [{}]})
        with pytest.raises(AnswerUnreadable):
            await provider.build_context(ContextRequest())

    @pytest.mark.parametrize("answer", ["", "done", {"success": False}], ids=["empty", "text", "object"])
    async def test_what_close_and_forget_answer_is_ignored(
        self, backend: Backend, provider: AgentMemoryProvider, answer: object
    ) -> None:
        script(backend, "/session/end", answer)
        script(backend, "/forget", answer)
        await provider.close_session("s")
        await provider.forget("m")
        assert backend.endpoints == ["/session/end", "/forget"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("status", "words"),
        [
            (401, "does not take this API key"),
            (403, "does not take this API key"),
            (404, "the base URL is wrong, or the server is an old one"),
            (429, "limits the rate"),
            (500, "answered 500"),
            (302, "answered 302"),
        ],
        ids=str,
    )
    async def test_a_status_says_what_to_do(
        self, backend: Backend, provider: AgentMemoryProvider, status: int, words: str
    ) -> None:
        script(backend, "/remember", "x" * 600, status)
        with pytest.raises(BackendRefused, match=words) as refused:
            await provider.save(Observation("a"))
        assert refused.value.status == status
        assert str(refused.value).startswith(f"/agentmemory/remember answered {status}")
        assert refused.value.body == "x" * 500

    async def test_the_text_of_an_error_quotes_neither_host_nor_key_nor_what_was_sent(self, backend: Backend) -> None:
        script(backend, "/remember", "the gate refused: the secret text", 422)
        with pytest.raises(BackendRefused) as refused:
            await AgentMemoryProvider({**backend.settings, "apiKey": "k-1"}).save(Observation("the secret text"))
        assert str(refused.value) == "/agentmemory/remember answered 422"

    async def test_a_backend_that_hangs_is_left_after_the_timeout(self, backend: Backend) -> None:
        backend.hanging.add("/context")
        with pytest.raises(BackendTimedOut, match="within 1 s"):
            await AgentMemoryProvider({**backend.settings, "timeoutMs": 1_000}).build_context(ContextRequest())


async def test_a_backend_without_pages_exports_everything_at_once(
    backend: Backend, provider: AgentMemoryProvider
) -> None:
    backend.scripted["/export"] = (200, '{"sessions": [], "memories": [{"id": "m1"}]}')
    assert await provider.export_all() == [{"sessions": [], "memories": [{"id": "m1"}]}]
    assert [call.query for call in backend.calls("/export")] == [{}]


async def test_the_whole_loop(backend: Backend, provider: AgentMemoryProvider) -> None:
    """Open, save, search, context, forget, close, list: what is forgotten is found no more."""
    session = await provider.open_session(metadata={"ownerUserId": "u1"})
    saved = await provider.save(Observation("Prices are in cents.", ["pricing"], {"ownerUserId": "u1"}, session.id))
    assert [one.id for one in (await provider.search(Search("prices"))).results] == [saved.id]
    assert "cents" in (await provider.build_context(ContextRequest("prices"))).content
    await provider.forget(saved.id)
    assert (await provider.search(Search("*"))).results == []
    assert (await provider.build_context(ContextRequest("prices"))).content == ""
    await provider.close_session(session.id)
    await provider.close_session(session.id)
    [listed] = await provider.list_sessions()
    assert (listed.id, listed.metadata) == (session.id, {"ownerUserId": "u1"})
    assert listed.ended_at is not None
    assert backend.open_sessions == []
