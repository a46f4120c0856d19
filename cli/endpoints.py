"""Where is the bus? The option, LOREBUS_NATS_URL, a running `lorebus up`, in this order; else say what to do."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from lorebus import LorebusError

FILE = "endpoints.json"

NatsUrl = Annotated[
    str | None,
    typer.Option("--nats-url", envvar="LOREBUS_NATS_URL", help="Address of the bus, nats://host:port."),
]
DataFolder = Annotated[
    Path,
    typer.Option("--data", envvar="LOREBUS_DATA", help="Data folder of a running `lorebus up`."),
]
Tenant = Annotated[str, typer.Option("--tenant", envvar="LOREBUS_TENANT", help="Whose memory.")]

DATA_DEFAULT = Path(".lorebus")


class EndpointsUnknown(LorebusError):
    """Nothing says where the parts of Lorebus are."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """What a running `lorebus up` wrote down."""

    nats: str | None = None
    http: str | None = None
    database: str | None = None


def find_nats_url(nats_url: str | None, data: Path = DATA_DEFAULT) -> str:
    """Raises EndpointsUnknown, which says how to get a bus."""
    found = nats_url or read_endpoints(data).nats
    if not found:
        raise EndpointsUnknown(
            f"no bus is known: start one with `lorebus up` (its {data / FILE} was looked for), "
            "or name one with --nats-url or LOREBUS_NATS_URL"
        )
    return found


def read_endpoints(data: Path) -> Endpoints:
    """Empty where no `lorebus up` wrote any."""
    path = data / FILE
    try:
        value: Any = json.loads(path.read_bytes())
    except FileNotFoundError:
        return Endpoints()
    except (OSError, ValueError) as error:
        raise EndpointsUnknown(f"{path} cannot be read ({error}): start `lorebus up` again") from error
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return Endpoints(*(str(fields[name]) if fields.get(name) else None for name in ("nats", "http", "database")))
