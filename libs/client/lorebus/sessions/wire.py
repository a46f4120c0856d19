"""JSON calls to an agentmemory backend, and what its statuses mean (spec 5)."""

import asyncio
import json
from collections.abc import Mapping
from urllib.parse import urlencode

from pydantic import JsonValue

from lorebus.sessions.errors import BackendRefused, BackendTimedOut
from lorebus.sessions.exchange import Exchange, HttpAnswer, HttpRequest, exchange_http
from lorebus.sessions.settings import AgentMemorySettings

PREFIX = "/agentmemory"
REFUSAL_CHARS_MAX = 500


class AgentMemoryWire:
    """Raises BackendUnavailable and BackendRefused."""

    def __init__(self, settings: AgentMemorySettings, exchange: Exchange = exchange_http) -> None:
        self.settings = settings
        self._exchange = exchange

    async def get(self, path: str, query: Mapping[str, str | int | None] | None = None) -> JsonValue:
        asked = urlencode({name: value for name, value in (query or {}).items() if value is not None})
        return await self._call("GET", path, f"?{asked}" if asked else "", None)

    async def post(self, path: str, fields: Mapping[str, object]) -> JsonValue:
        """What is None is absent, not null."""
        body = {name: value for name, value in fields.items() if value is not None}
        return await self._call("POST", path, "", json.dumps(body).encode())

    async def _call(self, method: str, path: str, query: str, body: bytes | None) -> JsonValue:
        target = f"{PREFIX}{path}{query}"
        request = HttpRequest(self.settings.address, method, target, self._headers(body), body)
        try:
            async with asyncio.timeout(self.settings.timeout_seconds):
                answer = await self._exchange(request)
        except TimeoutError as error:
            raise BackendTimedOut(self.settings.timeout_seconds) from error
        return _read(answer, f"{PREFIX}{path}")

    def _headers(self, body: bytes | None) -> Mapping[str, str]:
        headers = {"Accept": "application/json"}
        if self.settings.api_key:
            headers["Authorization"] = f"Bearer {self.settings.api_key}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        return headers


def _read(answer: HttpAnswer, path: str) -> JsonValue:
    """Nothing for an empty body, the text for one that is no JSON."""
    text = answer.body.decode("utf-8", "replace")
    if not 200 <= answer.status < 300:
        raise BackendRefused(answer.status, path, text[:REFUSAL_CHARS_MAX])
    if not text.strip():
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text
