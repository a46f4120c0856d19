"""`lorebus tap`: watch what the memory does."""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

import typer
from lorebus import Since, TappedEvent
from lorebus.contracts.events import EVENTS
from rich.text import Text

from cli.endpoints import DATA_DEFAULT, DataFolder, NatsUrl, Tenant
from cli.loading import new_app
from cli.output import note, notes, out, plain, show_json
from cli.running import DONE, Target, run

app = new_app()

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}

STYLES = {
    "written": "green",
    "retrieved": "cyan",
    "superseded": "magenta",
    "consolidated": "magenta",
    "skipped": "dim",
    "unavailable": "yellow",
    "dropped": "red",
    "refused": "red",
    "conflict": "yellow",
    "dead": "bold red",
}
"""By the words in a kind, so that kinds to come have a colour."""


def parse_age(text: str) -> timedelta:
    """`90s`, `15m`, `1h`, `2d`."""
    match = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if not match:
        raise typer.BadParameter("an age is a number with s, m, h or d, such as 15m or 1h")
    return timedelta(**{UNITS[match[2]]: int(match[1])})


def parse_kind(text: str) -> str:
    if not re.fullmatch(r"[a-z][a-z_]*", text):
        raise typer.BadParameter(f"{text!r} is no kind; known kinds are {', '.join(EVENTS)}")
    return text


@app.command()
def tap(
    kinds: Annotated[
        list[str] | None,
        typer.Argument(metavar="KIND", help="Only these, such as lesson_written.", parser=parse_kind),
    ] = None,
    since: Annotated[
        timedelta | None, typer.Option(parser=parse_age, metavar="AGE", help="Begin so long ago: 90s, 15m, 1h, 2d.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Begin with all that the bus still holds.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    tenant: Tenant = "default",
    nats_url: NatsUrl = None,
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """Watch what the memory does, live: ids, counts and reasons, never the text of a memory.

    Goes on over restarts of the bus without missing an event. Ctrl-C ends it.

    Example: lorebus tap lesson_written lesson_refused --since 1h
    """
    if since and everything:
        raise typer.BadParameter("--since and --all exclude each other")
    begin: Since = "start" if everything else since
    run(watch(Target(nats_url, data, tenant), kinds or (), begin, as_json), interrupted=DONE)


async def watch(target: Target, kinds: Sequence[str], since: Since, as_json: bool) -> None:
    unknown = [kind for kind in kinds if kind not in EVENTS]
    if unknown:
        note(f"this version publishes no {', '.join(unknown)}; known kinds are {', '.join(EVENTS)}")
    async with target.connect() as memory, memory.events(kinds, since) as facts:
        notes.print(plain(f"tapping {memory.connection.address}, Ctrl-C ends", "dim"))
        async for fact in facts:
            show_fact(fact, as_json)


def show_fact(fact: TappedEvent, as_json: bool) -> None:
    if as_json:
        show_json(
            {
                "kind": fact.kind,
                "tenant": fact.tenant,
                "subject": fact.subject,
                "sequence": fact.sequence,
                "published_at": fact.published_at,
                "payload": fact.payload,
            }
        )
    else:
        out.print(render_fact(fact), soft_wrap=True)


def render_fact(fact: TappedEvent) -> Text:
    style = next((style for word, style in STYLES.items() if word in fact.kind), "blue")
    payload = {name: value for name, value in fact.payload.items() if name not in ("at", "tenant")}
    where = payload.pop("repository", "")
    rest = " ".join(f"{name}={value}" for name, value in payload.items() if value not in (None, [], ""))
    return Text.assemble(
        (f"{fact.published_at.astimezone():%H:%M:%S} ", "dim"),
        plain(f"{fact.kind:<24} ", style),
        plain(f"{where} ", "bold"),
        plain(rest, "dim"),
    )
