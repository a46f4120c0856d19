"""`lorebus forget`: memories go, in every copy."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID, uuid4

import typer
from lorebus import Lorebus, LorebusError, Tap
from lorebus.contracts.envelope import build_message
from lorebus.contracts.memory import DeleteMemory
from lorebus.forgetting import ForgetFields
from rich.text import Text

from cli.actor import find_actor
from cli.endpoints import DATA_DEFAULT, DataFolder, NatsUrl, Tenant, read_endpoints
from cli.loading import new_app
from cli.output import note, notes, out, plain, show_json, show_table
from cli.proving import Probe, Proving, Remembered, remember
from cli.running import FAILED, Target, run
from cli.stores import open_database

app = new_app()

KINDS = ("deleted", "dead")


class NotForgotten(LorebusError):
    """The command did not come to an end in time, or became a dead letter."""


@dataclass(frozen=True, slots=True)
class Result:
    """What was told of the delete; `probes` is None where nothing was to be proved."""

    event_id: str
    deleted: Sequence[str]
    restored: Sequence[str]
    physical_by: str
    unattributed: int | None
    probes: Sequence[Probe] | None = None

    @property
    def is_proved(self) -> bool:
        return not any(probe.found or probe.fault for probe in self.probes or ())


@app.command()
def forget(
    ids: Annotated[list[UUID] | None, typer.Argument(metavar="[ID]...", help="As recall and tap show them.")] = None,
    person: Annotated[
        str | None, typer.Option(help="Every channel memory that is attributed to this chat user, in every channel.")
    ] = None,
    session: Annotated[str | None, typer.Option(help="Every memory of this session.")] = None,
    event: Annotated[
        list[str] | None,
        typer.Option(help="A run or a note by its event id, dead letters and evidence too; repeatable."),
    ] = None,
    reason: Annotated[str, typer.Option(help="For the audit.")] = "",
    prove: Annotated[bool, typer.Option("--prove", help="Look for what was forgotten wherever it may lie.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    wait_seconds: Annotated[float, typer.Option(min=1, help="How long to wait for the outcome.")] = 60,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    tenant: Tenant = "default",
    nats_url: NatsUrl = None,
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """Forget memories for good: with what was merged from them, their evidence and their messages on the bus.

    What they had replaced or been merged with comes back. With --prove every table, every message and, beside a
    `lorebus up`, the files of the bus are searched for the old texts afterwards; exit code 1 when one is found.

    Examples: lorebus forget 0199c2d4-5a1e-7c60-9a51-3f6f0b6f2a11 --prove · lorebus forget --person U024BE7LH
    """
    named: dict[str, Any] = {"ids": ids, "person": person, "session_id": session, "event_ids": event}
    named = {name: value for name, value in named.items() if value}
    if len(named) != 1:
        raise typer.BadParameter("name ids, or one of --person, --session and --event")
    fields = ForgetFields(actor=find_actor(), reason=reason, event_id=str(uuid4()), **named)
    if not yes and sys.stdin.isatty() and not typer.confirm(_question(named), err=True):
        note("Nothing was forgotten.")
        raise typer.Exit(FAILED)
    result = run(_forget(Target(nats_url, data, tenant), fields, wait_seconds, prove=prove))
    if as_json:
        show_json(render_json(result))
    else:
        show_result(result)
    if not result.is_proved:
        raise typer.Exit(FAILED)


def _question(named: dict[str, Any]) -> str:
    [(name, value)] = named.items()
    meant = {"person": f"everything that channels know from {value}", "session_id": f"everything of session {value}"}
    what = meant.get(name) or f"{len(value)} {'memories' if name == 'ids' else 'events'}"
    return f"Forget {what}, and all that was merged from it, for good?"


async def _forget(target: Target, fields: ForgetFields, wait_seconds: float, *, prove: bool) -> Result:
    async with AsyncExitStack() as stack:
        memory = await stack.enter_async_context(target.connect())
        engine = await stack.enter_async_context(open_database(target.data)) if prove else None
        command = build_message(DeleteMemory, fields)
        remembered = await remember(engine, target.tenant, command) if engine else Remembered()
        result = await _follow(memory, fields, wait_seconds)
        if engine is None:
            return result
        with notes.status("looking for what was forgotten"):
            probes = await Proving(engine, memory, remembered, _find_folder(target.data)).prove()
    return replace(result, probes=probes)


def _find_folder(data: Path) -> Path | None:
    """Where the files of a `lorebus up` lie that runs the bus itself."""
    moved = data / "moved-to"
    home = Path(moved.read_text()) if moved.exists() else data
    return home if read_endpoints(data).nats and (home / "nats" / "store").exists() else None


async def _follow(memory: Lorebus, fields: ForgetFields, wait_seconds: float) -> Result:
    async with memory.events(KINDS) as tap:
        event_id = (await memory.forget(**fields)).event_id
        with notes.status("forgetting"):
            return await _wait(tap, event_id, wait_seconds)


async def _wait(tap: Tap, event_id: str, wait_seconds: float) -> Result:
    try:
        async with asyncio.timeout(wait_seconds):
            return await _gather(tap, event_id)
    except TimeoutError:
        raise NotForgotten(
            f"the bus holds the command, and nobody was done with it within {wait_seconds:g} s: "
            "does a consolidator run? `lorebus doctor` tells"
        ) from None


async def _gather(tap: Tap, event_id: str) -> Result:
    """All parts of what is told of the command."""
    deleted: list[str] = []
    restored: list[str] = []
    seen = 0
    while True:
        fact = await anext(tap)
        if fact.payload.get("event_id") != event_id:
            continue
        if fact.kind == "dead":
            raise NotForgotten(f"the command became a dead letter: {fact.payload.get('reason')}")
        told, seen = fact.payload, seen + 1
        deleted += told["deleted"]
        restored += told["restored"]
        if seen >= told.get("parts", 1):
            return Result(event_id, deleted, restored, told["physical_by"], told.get("unattributed"))


def render_json(result: Result) -> dict[str, object]:
    fields: dict[str, object] = {
        "event_id": result.event_id,
        "deleted": result.deleted,
        "restored": result.restored,
        "physical_by": result.physical_by,
        "unattributed": result.unattributed,
    }
    if result.probes is None:
        return fields
    proof = [{"where": probe.where, "found": probe.found, "fault": probe.fault} for probe in result.probes]
    return fields | {"proof": proof, "proved": result.is_proved}


def show_result(result: Result) -> None:
    out.print(plain(f"{len(result.deleted)} forgotten{_listed(result.deleted)}"))
    if result.restored:
        out.print(plain(f"{len(result.restored)} brought back{_listed(result.restored)}"))
    if result.unattributed:
        note(f"{result.unattributed} channel memories name nobody, so that this could not find them")
    if result.probes is not None:
        show_table(("looked for in", "found", "where"), [_row(probe) for probe in result.probes])
    out.print(plain(f"Nobody is shown it from now on. Its bytes leave the database's files by {result.physical_by}."))


def _listed(ids: Sequence[str]) -> str:
    return f": {', '.join(ids)}" if ids else ""


def _row(probe: Probe) -> tuple[object, ...]:
    if probe.fault:
        return probe.where, Text("not looked", style="yellow"), probe.fault
    where = ", ".join(f"{name} ({count})" for name, count in probe.found.items())
    return probe.where, Text("yes", style="red") if probe.found else Text("no", style="green"), where
