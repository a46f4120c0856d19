"""Refusals, and what every failure is answered with: in the words of its surface, without any stored text."""

from collections.abc import Mapping
from typing import Any, cast

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from lorebus.errors import LorebusError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from libs.common.errors import StoreUnavailable
from services.api.agent_memory.violations import explain_violations
from services.api.backend import BackendUnavailable
from services.api.surfaces import render_refusal

_log = structlog.get_logger("api")


class Refused(LorebusError):
    """An answer that is not 2xx, as its route decided it."""

    def __init__(self, status: int, message: str | list[str], body: Mapping[str, Any] | None = None) -> None:
        super().__init__(str(message))
        self.status = status
        self.message = message
        self.body = body
        """In place of what the surface says to all refusals."""


def add_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(Refused, _answer_refused)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_http)
    for outage in (BackendUnavailable, StoreUnavailable):
        app.add_exception_handler(outage, _answer_outage)
    app.add_exception_handler(Exception, _answer_broken)


async def _answer_refused(request: Request, error: Exception) -> JSONResponse:
    refused = cast("Refused", error)
    if refused.body is not None:
        return JSONResponse(refused.body, refused.status)
    return _answer(request, refused.status, refused.message)


async def _answer_invalid(request: Request, error: Exception) -> JSONResponse:
    """All violations in one answer."""
    violations = explain_violations(cast("RequestValidationError", error).errors())
    return _answer(request, 400, violations)


async def _answer_http(request: Request, error: Exception) -> JSONResponse:
    """No such route, no such method, a body that is not JSON."""
    refused = cast("HTTPException", error)
    answer = _answer(request, refused.status_code, str(refused.detail))
    answer.headers.update(refused.headers or {})
    return answer


async def _answer_outage(request: Request, error: Exception) -> JSONResponse:
    _log.warning("api.unavailable", reason=str(error))
    return _answer(request, 503, str(error))


async def _answer_broken(request: Request, _error: Exception) -> JSONResponse:
    return _answer(request, 500, "internal error")


def _answer(request: Request, status: int, message: str | list[str]) -> JSONResponse:
    return JSONResponse(render_refusal(request.url.path, status, message), status)
