"""The web application: routes of both surfaces, how failures are answered, what every request passes first."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from services.api import health
from services.api.agent_memory import routes as agent_memory
from services.api.agent_memory.access import Access
from services.api.agentmemory import routes as agentmemory
from services.api.edge.admission import Admission, Credentials
from services.api.edge.bodies import Bodies
from services.api.edge.request_ids import RequestIds
from services.api.errors import add_error_handlers
from services.api.exporting import Exporting
from services.api.rates import Rates
from services.api.service import MemoryService
from services.api.settings import ApiSettings

_VALIDATION_ERROR = "#/components/schemas/HTTPValidationError"


def build_app(
    memory: MemoryService, exporting: Exporting, access: Access, credentials: Credentials, settings: ApiSettings
) -> FastAPI:
    app = FastAPI(title="Lorebus", version=health.VERSION, redoc_url=None, redirect_slashes=False)
    app.include_router(health.build_router(memory))
    app.include_router(
        agentmemory.build_router(
            memory, exporting, settings.api_project_default, deletes_beyond_project=settings.api_delete_beyond_project
        )
    )
    app.include_router(agent_memory.build_router(memory, access))
    add_error_handlers(app)
    # The last one added is passed first.
    app.add_middleware(Bodies, bytes_max=settings.api_body_bytes_max)
    app.add_middleware(Admission, credentials=credentials, rates=Rates(settings.api_requests_per_minute))
    app.add_middleware(RequestIds)
    app.openapi = _openapi_of(app)
    return app


def _openapi_of(app: FastAPI) -> Callable[[], dict[str, Any]]:
    """What is really answered: a violation is a 400 here, not the 422 that the framework assumes."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _without_framework_422(
                get_openapi(title=app.title, version=app.version, routes=app.routes)
            )
        return app.openapi_schema

    return openapi


def _without_framework_422(schema: dict[str, Any]) -> dict[str, Any]:
    for path in schema["paths"].values():
        for method in path.values():
            if _VALIDATION_ERROR in str(method["responses"].get("422")):
                del method["responses"]["422"]
    for name in ("HTTPValidationError", "ValidationError"):
        schema["components"]["schemas"].pop(name, None)
    return schema
