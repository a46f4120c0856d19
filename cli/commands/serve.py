"""`lorebus serve`: one or more services in this process, as containers run them."""

from typing import Annotated

import typer

from cli.loading import new_app
from cli.one_machine import PROGRAMS
from cli.running import run
from libs.common.run import serve as serve_programs

app = new_app()


@app.command()
def serve(
    services: Annotated[list[str], typer.Argument(metavar="SERVICE...", help=f"Any of: {', '.join(PROGRAMS)}.")],
) -> None:
    """Run services until SIGTERM.

    They connect to LOREBUS_DATABASE_URL and LOREBUS_NATS_URL, which `lorebus migrate` has prepared; any service may
    run in any number of copies. LOREBUS_HEALTH_PORT opens /healthz and /readyz.

    Example: lorebus serve gate writer recall
    """
    if unknown := [name for name in services if name not in PROGRAMS]:
        raise typer.BadParameter(f"no such service: {', '.join(unknown)}. There are {', '.join(PROGRAMS)}.")
    run(serve_programs([PROGRAMS[name] for name in dict.fromkeys(services)]))
