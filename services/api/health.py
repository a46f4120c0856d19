"""Health and readiness apart: whether the process lives, and whether its parts answer."""

from importlib.metadata import version

from fastapi import APIRouter
from starlette.responses import JSONResponse

from services.api.agentmemory.replies import HealthReply
from services.api.service import MemoryService
from services.api.surfaces import AGENTMEMORY

VERSION = version("lorebus-server")


def build_router(memory: MemoryService) -> APIRouter:
    router = APIRouter(tags=["health"], responses={503: {"model": HealthReply}})

    async def report() -> JSONResponse:
        """503 where the database or the bus does not answer, and never `ok` then."""
        is_ok = await memory.is_available()
        reply = HealthReply(status="ok" if is_ok else "unavailable", ok=is_ok, version=VERSION)
        return JSONResponse(reply.model_dump(), 200 if is_ok else 503)

    for path in ("/readyz", f"{AGENTMEMORY}/health", f"{AGENTMEMORY}/livez"):
        router.add_api_route(path, report, methods=["GET"], response_model=HealthReply, name=path.strip("/"))

    @router.get("/healthz")
    async def live() -> HealthReply:
        """The process answers."""
        return HealthReply(status="ok", ok=True, version=VERSION)

    return router
