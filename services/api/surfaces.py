"""The surfaces by their paths, and how each words a refusal."""

from http import HTTPStatus
from typing import Any

AGENTMEMORY = "/agentmemory"
AGENT_MEMORY = "/api/agent-memory"
OPEN_PATHS = frozenset({"/healthz", "/readyz", "/openapi.json", "/docs", "/agentmemory/health", "/agentmemory/livez"})
"""Answered without credentials."""


def is_below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(f"{prefix}/")


def render_refusal(path: str, status: int, message: str | list[str]) -> dict[str, Any]:
    """The body of an answer that is not 2xx."""
    if is_below(path, AGENTMEMORY):
        return {"error": "; ".join(message) if isinstance(message, list) else message}
    if is_below(path, AGENT_MEMORY):
        if status in (400, 401):
            return {"statusCode": status, "message": message, "error": HTTPStatus(status).phrase}
        return {"status": "error", "message": message}
    return {"error": {"code": HTTPStatus(status).name, "message": message}}
