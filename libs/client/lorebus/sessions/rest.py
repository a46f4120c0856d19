"""What a host's own REST surface answers for its facade (spec 4): for hosts that offer their memory over HTTP. Pure."""

from collections.abc import Mapping

from pydantic import JsonValue

from lorebus.errors import LorebusError
from lorebus.sessions.errors import Operation, OperationNotSupported
from lorebus.sessions.facade import Availability

Body = Mapping[str, JsonValue]


def render_availability(found: Availability) -> Body:
    provider: Body = {"id": found.provider_id, "name": found.provider_name}
    body: dict[str, JsonValue] = {
        "status": "success",
        "available": found.is_available,
        "activeProvider": dict(provider) if found.is_available else None,
    }
    return body if found.message is None else {**body, "message": found.message}


def render_failure(operation: Operation, error: LorebusError) -> tuple[int, Body]:
    """Status and body: 404 where the provider lacks the operation, 400 for all else, no provider included."""
    status = 404 if isinstance(error, OperationNotSupported) else 400
    return status, {"status": "error", "message": str(error), "operation": operation}
