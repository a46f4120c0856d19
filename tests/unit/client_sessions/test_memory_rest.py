"""What a host that offers its memory over HTTP answers for its facade (spec 4)."""

import pytest
from lorebus.errors import LorebusError
from lorebus.sessions.errors import (
    NoProvider,
    OperationNotSupported,
    ProviderFailed,
    ProviderNotFound,
)
from lorebus.sessions.facade import MemoryFacade
from lorebus.sessions.registry import BUILT_IN, Caller
from lorebus.sessions.rest import render_availability, render_failure


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (NoProvider(), 400, "enable one"),
        (OperationNotSupported("listSessions", "minimal"), 404, "does not support"),
        (ProviderFailed("listSessions", "agentmemory"), 400, "failed"),
        (ProviderNotFound("other"), 400, "not registered"),
    ],
    ids=["no provider", "not supported", "failed", "not found"],
)
def test_a_failure_names_the_operation(error: LorebusError, status: int, words: str) -> None:
    answered, body = render_failure("listSessions", error)
    assert (answered, body["status"], body["operation"]) == (status, "error", "listSessions")
    assert words in str(body["message"])


async def test_a_memory_is_available_by_the_name_of_its_provider() -> None:
    assert render_availability(await MemoryFacade(BUILT_IN).check_availability(Caller("u1"))) == {
        "status": "success",
        "available": True,
        "activeProvider": {"id": "agentmemory", "name": "agentmemory"},
    }


async def test_without_a_memory_it_is_said_what_to_do() -> None:
    body = render_availability(await MemoryFacade(()).check_availability(Caller("u1")))
    assert (body["status"], body["available"], body["activeProvider"]) == ("success", False, None)
    assert "enable one" in str(body["message"])
