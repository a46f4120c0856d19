"""docs/openapi.json is what the service says of itself. To write it anew: LOREBUS_WRITE_OPENAPI=1 with this test."""

import json
import os
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from lorebus.connection import Connection, ConnectionOptions
from nats.aio.client import Client

from libs.common.bus.relay import Relay
from libs.common.database import create_engine
from services.api.agent_memory.access import Access
from services.api.backend import Backend
from services.api.edge.admission import Credentials
from services.api.exporting import Exporting
from services.api.records import Records
from services.api.service import MemoryService
from services.api.settings import ApiSettings
from services.api.store import ApiStore
from services.api.surfaces import OPEN_PATHS
from services.api.web import build_app

FILE = Path(__file__).parents[3] / "docs/openapi.json"


@pytest.fixture
async def schema() -> dict[str, Any]:
    """Of a service that is connected to nothing."""
    engine = create_engine("postgresql://nobody@127.0.0.1:1/none", "tests")
    store, records = ApiStore(engine), Records(asyncpg.create_pool())
    connection = Connection(ConnectionOptions("nats://127.0.0.1:1"))
    backend = Backend(connection, store, save_seconds=1, recall_seconds=1)
    memory = MemoryService(store, records, backend, Relay(engine, Client()))
    app = build_app(
        memory,
        Exporting(store, records),
        Access(store, records, "ever-works"),
        Credentials(None, None, "default"),
        ApiSettings(),
    )
    await engine.dispose()
    return app.openapi()


def test_the_committed_description_is_the_services_own(schema: dict[str, Any]) -> None:
    said = json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    if os.environ.get("LOREBUS_WRITE_OPENAPI"):
        FILE.write_text(said)
    assert FILE.read_text() == said


def test_every_route_tells_its_refusals(schema: dict[str, Any]) -> None:
    told = {
        f"{method} {path}": set(route["responses"])
        for path, routes in schema["paths"].items()
        for method, route in routes.items()
    }
    guarded = {name: codes for name, codes in told.items() if name.partition(" ")[2] not in OPEN_PATHS}
    assert len(guarded) == 16
    assert {name for name, codes in guarded.items() if not {"400", "401", "413", "429"} <= codes} == set()
    assert [name for name, codes in told.items() if "422" in codes] == ["post /agentmemory/remember"]
