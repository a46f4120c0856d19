"""The HTTP service as a service: who it lets in, how it starts and stops, what it says when a part is down."""

import asyncio
import json
import time
from uuid import uuid4

import jwt
import pytest
import sqlalchemy as sa
from api_surface import FIXTURES, JWT_SECRET, SECRET, Api, token

from libs.common.bus.relay import Relay
from libs.common.errors import SetupIncomplete
from libs.common.run import running
from libs.common.schema import entries, memory_items, sessions
from libs.common.settings import CommonSettings
from services.api.app import PROGRAM as API
from services.api.store import ApiStore
from services.api.sweeping import Sweeping

api, project = FIXTURES


class TestEdge:
    async def test_every_answer_carries_a_request_id_the_callers_own_where_it_is_sound(self, api: Api) -> None:
        own = await api.call("GET", "/nowhere", headers={"x-request-id": "req-1"})
        made = await api.call("GET", "/healthz", headers={"x-request-id": "not an id"})
        assert own.headers["x-request-id"] == "req-1"
        assert len(made.headers["x-request-id"]) == 36

    async def test_a_taken_port_is_named_at_the_start(self, api: Api, servers: CommonSettings) -> None:
        taken = servers.model_copy(update={"api_port": int(api.url.rpartition(":")[2])})
        with pytest.raises(SetupIncomplete, match="LOREBUS_API_PORT"):
            async with running([API], taken):
                pass


class TestSweeper:
    async def test_an_abandoned_session_is_closed_once_and_said_so(self, api: Api, project: str) -> None:
        started = [(await api.drop_in("/session/start", {"project": project})).json()["id"] for _ in range(2)]
        idle, used = started
        engine = api.installation.engine
        async with engine.begin() as connection:
            old = sa.update(sessions).where(sessions.c.id.in_(started))
            await connection.execute(old.values(used_at=sa.func.now() - sa.text("interval '5 hours'")))
        await api.drop_in("/context", {"project": project, "sessionId": used})
        store = ApiStore(engine)
        relay = Relay(engine, api.installation.memory.connection.client)
        sweepers = [Sweeping(store, relay, idle_seconds=14_400, every_seconds=60) for _ in range(5)]
        swept = await asyncio.gather(*(sweeper.sweep() for sweeper in sweepers))
        assert sum(swept) == 1
        fact = await api.installation.facts("session_closed", session_id=idle)
        assert fact["reason"] == "idle"
        answer = await api.drop_in("/sessions", method="GET", params={"project": project})
        assert {session["id"]: session["status"] for session in answer.json()["sessions"]} == {
            idle: "completed",
            used: "active",
        }


class TestEntriesOnTheBus:
    async def test_an_entry_published_as_a_command_is_found_over_http(self, api: Api, project: str) -> None:
        command = {"schema": "memory.write", "kind": "entry", "event_id": str(uuid4()), "project": project}
        body = json.dumps({**command, "content": "The bus knows it too.", "tags": ["bus"]}).encode()
        stream = api.installation.memory.connection.client.jetstream()
        await stream.publish("memory.write", body)
        event = await api.installation.end_of(command["event_id"])
        assert event.status == "written"
        answer = await api.drop_in("/smart-search", {"project": project, "query": "*", "tags": ["bus"]})
        assert [entry["id"] for entry in answer.json()["results"]] == [str(event.item_ids[0])]

    async def test_an_entry_replaces_none_that_says_the_same(self, api: Api, project: str) -> None:
        for _ in range(2):
            await api.drop_in("/remember", {"project": project, "content": "Twice the same words."})
        answer = await api.drop_in("/smart-search", {"project": project, "query": "twice the same words"})
        assert len(answer.json()["results"]) == 2

    async def test_fifty_writers_at_once_lose_nothing_that_was_acknowledged(self, api: Api, project: str) -> None:
        async def save(n: int) -> str:
            body = {"projectId": project, "content": f"Writer {n} was here."}
            answer = await api.rest(f"user-{n}", "POST", "/save", body)
            assert answer.status_code == 201, answer.text
            return answer.json()["record"]["id"]

        ids = await asyncio.gather(*(save(n) for n in range(50)))
        of_entries = sa.select(memory_items.c.id).join(entries, entries.c.item_id == memory_items.c.id)
        stored = await api.installation.rows(of_entries.where(memory_items.c.id.in_(ids)))
        assert {str(row["id"]) for row in stored} == set(ids)
        assert len(set(ids)) == 50

    async def test_a_save_answers_a_token_of_no_other_algorithm(self, api: Api) -> None:
        unsigned = jwt.encode({"sub": "ann", "exp": time.time() + 60}, None, algorithm="none")
        expired = token("ann", exp=time.time() - 60)
        for bearer in (unsigned, expired, jwt.encode({"sub": "ann"}, JWT_SECRET, "HS256"), SECRET):
            headers = {"authorization": f"Bearer {bearer}"}
            answer = await api.call("POST", "/api/agent-memory/save", {"content": "x"}, headers=headers)
            assert answer.status_code == 401
