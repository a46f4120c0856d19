"""A backend of the agentmemory format, faked: a local HTTP server with the endpoints of spec/sessions 7, kept in dicts.

A test module takes its fixtures by name: `backend_server, backend = FIXTURES`. The server is the module's, what it
holds is each test's own.
"""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

Fields = dict[str, Any]


@dataclass(frozen=True)
class Seen:
    """A request as it came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Fields | None


@dataclass
class Backend:
    url: str
    secret: str = ""
    requests: list[Seen] = field(default_factory=list[Seen])
    sessions: dict[str, Fields] = field(default_factory=dict[str, Fields])
    entries: dict[str, Fields] = field(default_factory=dict[str, Fields])
    hanging: set[str] = field(default_factory=set[str])
    """Endpoints that take a request and do not answer."""
    scripted: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    """Status and body in the place of an endpoint's own answer."""
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    """A hanging endpoint was called."""
    released: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def settings(self) -> dict[str, object]:
        return {"baseUrl": self.url, "projectId": "shop"}

    def calls(self, endpoint: str = "") -> list[Seen]:
        return [one for one in self.requests if one.path.endswith(endpoint)]

    def bodies(self, endpoint: str) -> list[Fields]:
        return [one.body or {} for one in self.calls(endpoint)]

    @property
    def endpoints(self) -> list[str]:
        """What was called, in order."""
        return [one.path.removeprefix("/agentmemory") for one in self.requests]

    @property
    def open_sessions(self) -> list[str]:
        return [key for key, session in self.sessions.items() if session["endedAt"] is None]

    async def answer(self, request: Request) -> Response:
        raw = await request.body()
        body = json.loads(raw) if raw else None
        self.requests.append(
            Seen(request.method, request.url.path, dict(request.query_params), dict(request.headers), body)
        )
        endpoint = request.url.path.removeprefix("/agentmemory")
        if endpoint in self.hanging:
            self.reached.set()
            await self.released.wait()
        if endpoint in self.scripted:
            status, text = self.scripted[endpoint]
            return Response(text, status)
        if endpoint == "/health":
            return JSONResponse({"status": "ok", "ok": True, "service": "fake", "version": "1"})
        if self.secret and request.headers.get("authorization") != f"Bearer {self.secret}":
            return JSONResponse({"error": "unauthorized"}, 401)
        return self._serve(endpoint, body or {}, dict(request.query_params))

    def _serve(self, endpoint: str, body: Fields, query: dict[str, str]) -> Response:
        match endpoint:
            case "/session/start":
                return JSONResponse(self._start(body))
            case "/session/end":
                session = self.sessions.get(body["sessionId"])
                if session is not None and session["endedAt"] is None:
                    session |= {"endedAt": now(), "status": "completed"}
                return JSONResponse({"success": True})
            case "/remember":
                return self._remember(body)
            case "/smart-search":
                found = self._find(body, limit=body.get("topK", 10))
                return JSONResponse({"results": [entry | {"obsId": entry["id"], "score": 0.5} for entry in found]})
            case "/context":
                found = self._find(body | {"query": "*"}, limit=10)
                content = "\n".join(entry["content"] for entry in found)[: 3 * body.get("tokenBudget", 2_000)]
                return JSONResponse({"content": content, "approxTokens": len(content) // 3, "references": found})
            case "/forget":
                entry_id = body.get("filter", {}).get("id")
                if not entry_id:
                    return JSONResponse({"error": "nothing is named"}, 400)
                return JSONResponse({"success": True, "deleted": int(self.entries.pop(entry_id, None) is not None)})
            case "/sessions":
                mine = [one for one in self.sessions.values() if one["project"] == query.get("projectId")]
                return JSONResponse({"sessions": mine[::-1][: int(query.get("limit", 100))]})
            case _:
                return JSONResponse({"error": "no such endpoint"}, 404)

    def _start(self, body: Fields) -> Fields:
        key = body.get("sessionId") or f"ses-{len(self.sessions) + 1}"
        session = {"id": key, "sessionId": key, "project": body["project"], "metadata": body.get("metadata")}
        return self.sessions.setdefault(key, session | {"startedAt": now(), "endedAt": None, "status": "active"})

    def _remember(self, body: Fields) -> Response:
        if not body["content"].strip():
            return JSONResponse({"error": "content is blank"}, 400)
        key = f"mem-{len(self.entries) + 1}"
        self.entries[key] = {"id": key, "createdAt": now(), **body}
        return JSONResponse(self.entries[key] | {"success": True}, 201)

    def _find(self, body: Fields, limit: int) -> list[Fields]:
        words = set(body["query"].lower().split())
        return [entry for entry in reversed(self.entries.values()) if fits(entry, body, words)][:limit]


def fits(entry: Fields, body: Fields, words: Iterable[str]) -> bool:
    wanted = body.get("tags") or []
    return (
        entry["project"] == body["project"]
        and (not wanted or bool({*wanted} & {*entry.get("tags", [])}))
        and (body["query"] == "*" or any(word in entry["content"].lower() for word in words))
    )


def said(caplog: pytest.LogCaptureFixture, level: int = logging.WARNING) -> list[str]:
    """What the client logged, from this level on; services of other tests may have turned on everybody's."""
    return [one.getMessage() for one in caplog.records if one.name == "lorebus" and one.levelno >= level]


def now() -> str:
    return datetime.now(UTC).isoformat()


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@dataclass
class BackendServer:
    backend: Backend

    def clear(self) -> Backend:
        self.backend.released.set()
        self.backend = Backend(self.backend.url)
        return self.backend

    async def answer(self, request: Request) -> Response:
        return await self.backend.answer(request)


@asynccontextmanager
async def running_backend() -> AsyncIterator[BackendServer]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        backend_server = BackendServer(Backend(f"http://127.0.0.1:{listening.getsockname()[1]}"))
        app = Starlette(routes=[Route("/{path:path}", backend_server.answer, methods=["GET", "POST"])])
        server = _Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        yield backend_server
        backend_server.clear()
        server.should_exit = True
        await serving


@pytest.fixture(scope="module")
async def backend_server() -> AsyncIterator[BackendServer]:
    async with running_backend() as running:
        yield running


@pytest.fixture
def backend(backend_server: BackendServer) -> Backend:
    return backend_server.clear()


FIXTURES = (backend_server, backend)
