"""The HTTP service from its start to its stop: who it lets in, what it says when a part is down."""

import asyncio
import json
import time
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from uuid import uuid4

import httpx
import jwt
import pytest
import sqlalchemy as sa
from api_surface import JWT_SECRET, SECRET, Door, find_port, running_api
from conftest import Installation, run_services
from cryptography.hazmat.primitives.asymmetric import rsa
from sqlalchemy.ext.asyncio import AsyncEngine

from libs.common.database import create_engine
from libs.common.errors import SetupIncomplete
from libs.common.run import running
from libs.common.schema import gate_patterns
from libs.common.settings import CommonSettings
from services.api.app import PROGRAM as API
from services.gate.app import PROGRAM as GATE
from services.recall.app import PROGRAM as RECALL
from services.writer.app import PROGRAM as WRITER

HOSTS_WAIT_SECONDS = 10.0
"""For a context (sessions spec 7)."""


@pytest.fixture
def project() -> str:
    """A project that no other test uses."""
    return f"site-{uuid4().hex[:12]}"


class TestCredentials:
    @pytest.mark.parametrize(
        ("given", "missing"),
        [
            ({}, "LOREBUS_API_SECRET and LOREBUS_API_JWT_SECRET or LOREBUS_API_JWKS_FILE"),
            ({"LOREBUS_API_SECRET": SECRET}, "LOREBUS_API_JWT_SECRET or LOREBUS_API_JWKS_FILE"),
            ({"LOREBUS_API_JWT_SECRET": JWT_SECRET}, "LOREBUS_API_SECRET"),
        ],
        ids=["none", "no token key", "no secret"],
    )
    async def test_without_credentials_it_listens_to_nobody_but_its_machine(
        self, servers: CommonSettings, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], missing: str
    ) -> None:
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        settings = servers.model_copy(update={"api_host": "0.0.0.0", "api_port": find_port()})
        with pytest.raises(SetupIncomplete, match=f"set {missing}, or LOREBUS_API_HOST=127.0.0.1"):
            async with running([API], settings):
                pass

    async def test_on_a_loopback_everybody_is_the_one_user_of_the_machine(
        self, servers: CommonSettings, project: str
    ) -> None:
        async with running_api(servers, find_port()) as api:
            opened = await api.call("POST", "/api/agent-memory/sessions", {"workId": str(uuid4())})
            assert opened.json()["session"]["metadata"] == {"ownerUserId": "local"}
            started = await api.call("POST", "/agentmemory/session/start", {"project": project})
            assert started.status_code == 200
            # A page in a browser of the machine, under a name that leads here.
            rebound = await api.call("GET", "/agentmemory/sessions", headers={"host": "evil.example:3111"})
            assert rebound.status_code == 401

    async def test_tokens_signed_by_a_key_of_the_set_are_taken(
        self, servers: CommonSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        key, other = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
        (tmp_path / "jwks.json").write_text(json.dumps({"keys": [{**public, "kid": "k1"}]}))
        monkeypatch.setenv("LOREBUS_API_JWKS_FILE", str(tmp_path / "jwks.json"))
        claims = {"sub": "ann", "exp": time.time() + 60}
        tokens = {
            200: jwt.encode(claims, key, "RS256", {"kid": "k1"}),
            401: jwt.encode(claims, other, "RS256", {"kid": "k1"}),
        }
        async with running_api(servers, find_port()) as api:
            for status, signed in tokens.items():
                headers = {"authorization": f"Bearer {signed}"}
                answer = await api.call("GET", "/api/agent-memory/check-availability", headers=headers)
                assert answer.status_code == status

    @pytest.mark.parametrize("content", [None, "{", '{"keys": []}'], ids=["absent", "no JSON", "empty"])
    async def test_a_key_set_that_cannot_be_read_is_named_at_the_start(
        self, servers: CommonSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
    ) -> None:
        if content is not None:
            (tmp_path / "jwks.json").write_text(content)
        monkeypatch.setenv("LOREBUS_API_JWKS_FILE", str(tmp_path / "jwks.json"))
        with pytest.raises(SetupIncomplete, match="LOREBUS_API_JWKS_FILE"):
            async with running([API], servers):
                pass


class TestEdge:
    async def test_a_caller_who_asks_too_often_is_told_when_to_come_back(
        self, servers: CommonSettings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LOREBUS_API_REQUESTS_PER_MINUTE", "4")
        monkeypatch.setenv("LOREBUS_API_JWT_SECRET", JWT_SECRET)
        async with running_api(servers, find_port()) as api:
            answers = [await api.rest("ann", "GET", "/sessions") for _ in range(3)]
            assert [answer.status_code for answer in answers] == [200, 200, 429]
            assert 1 <= int(answers[-1].headers["retry-after"]) <= 15
            assert answers[-1].json() == {"status": "error", "message": "too many requests"}
            assert (await api.rest("bob", "GET", "/sessions")).status_code == 200
            assert (await api.call("GET", "/healthz")).status_code == 200

    async def test_a_request_in_work_is_answered_at_a_stop(self, servers: CommonSettings) -> None:
        engine, port = create_engine(servers.database_url, "tests"), find_port()
        async with AsyncExitStack() as service, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
            await service.enter_async_context(run_services(servers.model_copy(update={"api_port": port}), API))
            async with engine.begin() as blocking:
                await blocking.execute(sa.text("lock table sessions in access exclusive mode"))
                waiting = asyncio.create_task(http.get("/agentmemory/sessions"))
                await _until_blocked(engine)
                stopping = asyncio.create_task(service.aclose())
                await _until_closed(port)
            assert (await waiting).status_code == 200
            await stopping
        await engine.dispose()


class TestGate:
    async def test_an_entry_that_a_new_pattern_matches_is_in_no_search_and_no_context(
        self, apart: CommonSettings, project: str
    ) -> None:
        port, question = find_port(), {"project": project, "query": "how is the crane called"}
        async with run_services(apart, GATE, WRITER) as installation, running_api(apart, port) as api:
            for content in ("The crane is called Hercules.", "The crane is called Atlas."):
                body = {"project": project, "content": content}
                assert (await api.call("POST", "/agentmemory/remember", body)).status_code == 201
            pattern = {"label": "test.atlas", "source": "Atlas", "must_match": ["Atlas"], "must_not_match": ["x"]}
            async with installation.engine.begin() as connection:
                await connection.execute(sa.insert(gate_patterns).values(**pattern, is_built_in=False))
        async with run_services(apart, GATE, RECALL), running_api(apart, port) as api:
            for query in (question, {**question, "query": "*"}):
                found = await api.call("POST", "/agentmemory/smart-search", query)
                assert [entry["content"] for entry in found.json()["results"]] == ["The crane is called Hercules."]
            context = await api.call("POST", "/agentmemory/context", question)
            assert "Hercules" in context.text
            assert "Atlas" not in context.text


class TestForgetting:
    async def test_an_operator_can_keep_deletions_within_the_named_project(
        self, servers: CommonSettings, installation: Installation, monkeypatch: pytest.MonkeyPatch, project: str
    ) -> None:
        monkeypatch.setenv("LOREBUS_API_DELETE_BEYOND_PROJECT", "false")
        async with running_api(servers, find_port()) as api:
            saved = await api.call("POST", "/agentmemory/remember", {"project": project, "content": "A note."})
            deleted: list[int] = []
            for named in ("ever-works", project):
                body = {"project": named, "filter": {"id": saved.json()["id"]}}
                deleted.append((await api.call("POST", "/agentmemory/forget", body)).json()["deleted"])
            assert deleted == [0, 1]


class TestOutages:
    async def test_without_a_writer_a_save_is_told_in_time_and_stored_once_it_is_back(
        self, apart: CommonSettings, monkeypatch: pytest.MonkeyPatch, project: str
    ) -> None:
        monkeypatch.setenv("LOREBUS_API_SAVE_SECONDS_MAX", "1")
        body = {"projectId": project, "content": "Saved at last."}
        headers = {"idempotency-key": "k-1"}
        async with running_api(apart, find_port()) as api:
            down = await api.call("POST", "/api/agent-memory/save", body, headers=headers)
            assert (down.status_code, down.json().get("operation")) == (400, "saveMemory"), down.text
            drop_in = await api.call("POST", "/agentmemory/remember", {"content": "x"})
            assert (drop_in.status_code, set(drop_in.json())) == (503, {"error"})
            for path, request in (("/smart-search", {"query": "x"}), ("/context", {})):
                answer = await api.call("POST", f"/agentmemory{path}", request)
                assert answer.status_code == 503
            async with run_services(apart, GATE, WRITER), asyncio.timeout(20):
                saved = down
                while saved.status_code != 201:
                    saved = await api.call("POST", "/api/agent-memory/save", body, headers=headers)
                again = await api.call("POST", "/api/agent-memory/save", body, headers=headers)
            assert again.json() == saved.json()

    async def test_though_the_entries_cannot_be_read_a_context_is_answered_in_time(
        self, servers: CommonSettings, installation: Installation, project: str
    ) -> None:
        async with running_api(servers, find_port()) as api, asyncio.timeout(20):
            body = {"project": project, "content": "Backups run at midnight."}
            assert (await api.call("POST", "/agentmemory/remember", body)).status_code == 201
            question = {"project": project, "query": "when do backups run"}
            async with installation.engine.begin() as blocking:
                await blocking.execute(sa.text("lock table entries in access exclusive mode"))
                async with asyncio.timeout(HOSTS_WAIT_SECONDS):
                    locked = await api.call("POST", "/agentmemory/context", question)
            assert locked.status_code == 503
            again = await api.call("POST", "/agentmemory/context", question)
            assert "midnight" in again.json()["content"]

    async def test_without_a_database_health_is_503_and_never_ok(self, servers: CommonSettings) -> None:
        door = Door(servers.database_url)
        settings = servers.model_copy(update={"database_url": await door.open()})
        async with running_api(settings, find_port()) as api:
            door.close()
            for path in ("/agentmemory/health", "/agentmemory/livez", "/readyz"):
                answer = await api.call("GET", path)
                assert (answer.status_code, answer.json()["ok"], answer.json()["status"]) == (503, False, "unavailable")
            assert (await api.call("GET", "/healthz")).status_code == 200
            listed = await api.call("GET", "/agentmemory/sessions")
            assert (listed.status_code, set(listed.json())) == (503, {"error"})
            failed = await api.call("GET", "/api/agent-memory/sessions")
            assert (failed.status_code, failed.json()["operation"]) == (400, "listSessions")
            available = await api.call("GET", "/api/agent-memory/check-availability")
            assert (available.json()["available"], available.json()["activeProvider"]) == (False, None)
            await door.open()
            assert (await api.call("GET", "/agentmemory/health")).status_code == 200
        door.close()


async def _until_blocked(engine: AsyncEngine) -> None:
    """Until a statement waits for the lock that the test holds."""
    waiting = sa.text("select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%sessions%'")
    async with asyncio.timeout(10):
        while True:
            async with engine.connect() as connection:
                if await connection.scalar(waiting):
                    return
            await asyncio.sleep(0.02)


async def _until_closed(port: int) -> None:
    """Until nobody listens there any more."""
    async with asyncio.timeout(10):
        with suppress(OSError):
            while True:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                await asyncio.sleep(0.01)
