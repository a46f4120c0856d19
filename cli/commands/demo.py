"""`lorebus demo`: the whole product on real runs, in half a minute."""

import asyncio
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer

from cli.demo.story import Story, Told
from cli.demo.view import show_closing, show_opening
from cli.examples import Examples, find_examples
from cli.loading import new_app
from cli.one_machine import Machine, Ports, one_machine
from cli.output import notes
from cli.own_servers import refuse_real_servers
from cli.running import INTERRUPTED, run
from libs.common.run import stop_or_failure, stop_signal

app = new_app()

DEMO_DATA = Path(".lorebus/demo")


@app.command()
def demo(
    data: Annotated[Path, typer.Option("--data", help="Where the demo keeps its data.")] = DEMO_DATA,
    runs: Annotated[
        Path | None,
        typer.Option(
            "--runs", metavar="DIR", help="Runs of your own, *.json, in place of the samples.", file_okay=False
        ),
    ] = None,
) -> None:
    """See it work on real runs, then stop.

    Starts everything on this machine in a data folder of its own, publishes eight finished runs of public
    repositories, asks what later agents would ask, and shows a hostile run being refused. Running it again is safe:
    each run counts once.

    Example: lorebus demo
    """
    run(_demo(data, runs))


async def _demo(data: Path, runs: Path | None) -> None:
    examples = find_examples(runs)
    refuse_real_servers("demo")
    told = await _tell_on_machine(data, examples)
    show_closing(told, data, time.time() - psutil.Process().create_time())


async def _tell_on_machine(data: Path, examples: Examples) -> Told:
    stopping = stop_signal()
    with notes.status("starting Postgres, NATS and the services") as status:
        async with one_machine(data, Ports()) as machine:
            status.stop()
            show_opening(machine)
            async with Story.open(machine, examples) as story:
                told = await _until_stopped(story.tell(), stopping, machine)
            status.update("stopping")
            status.start()
    return told


async def _until_stopped(work: Coroutine[Any, Any, Told], stopping: asyncio.Event, machine: Machine) -> Told:
    """The result of the work, unless a signal or the end of a service comes first."""
    telling = asyncio.create_task(work)
    guard = asyncio.create_task(stop_or_failure(stopping, machine.failed))
    await asyncio.wait({telling, guard}, return_when=asyncio.FIRST_COMPLETED)
    if telling.done():
        guard.cancel()
        return telling.result()
    telling.cancel()
    await asyncio.gather(telling, return_exceptions=True)
    guard.result()
    raise typer.Exit(INTERRUPTED)
