"""`lorebus up`: the whole product on this machine."""

from typing import Annotated

import typer
from lorebus.settings import render_url
from sqlalchemy import make_url

from cli.endpoints import DATA_DEFAULT, DataFolder
from cli.loading import new_app
from cli.one_machine import Machine, Ports, one_machine
from cli.output import notes, out
from cli.running import run
from libs.common.run import stop_or_failure, stop_signal

app = new_app()


@app.command()
def up(
    data: DataFolder = DATA_DEFAULT,
    nats_port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the bus; 0 takes that of last time.")] = 0,
    http_port: Annotated[int, typer.Option(min=0, max=65535, help="Port for /healthz and /readyz.")] = 0,
    api_port: Annotated[
        int,
        typer.Option(
            min=0, max=65535, envvar="LOREBUS_API_PORT", help="Port of the HTTP service; 0 takes that of last time."
        ),
    ] = 0,
) -> None:
    """Run everything on this machine until Ctrl-C.

    Starts an embedded Postgres and nats-server with all data under one folder, unless LOREBUS_DATABASE_URL or
    LOREBUS_NATS_URL name real ones; then all services. Prints one `ready` line and writes the
    addresses to DIR/endpoints.json, where the other commands find them.

    Example: lorebus up --data ~/lorebus
    """
    run(_up(Ports(nats_port, http_port, api_port), data))


async def _up(ports: Ports, data: DataFolder) -> None:
    stopping = stop_signal()
    with notes.status("starting") as status:
        async with one_machine(data, ports) as machine:
            status.stop()
            out.print(render_ready(machine), soft_wrap=True)
            await stop_or_failure(stopping, machine.failed)
            status.update("stopping")
            status.start()


def render_ready(machine: Machine) -> str:
    return (
        f"ready nats={render_url(machine.nats_url)} http={machine.http_url} api={machine.api_url}"
        f" database={make_url(machine.database_url).render_as_string(hide_password=True)}"
        f" data={machine.data} ({machine.start_seconds:.1f} s)"
    )
