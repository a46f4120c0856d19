"""`lorebus pending`: memories that wait for an administrator."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar
from uuid import UUID

import typer
from lorebus.contracts.subjects import RUN_FINISHED, subject_for

from cli.actor import find_actor
from cli.endpoints import DATA_DEFAULT, DataFolder, Tenant
from cli.loading import new_app
from cli.output import out, plain, show_json, show_table
from cli.running import run
from cli.stores import open_database
from libs.common.administered_settings import AdministeredSettings
from libs.common.pending import Pending, PendingItem, find_pending

app = new_app()

ResultT = TypeVar("ResultT")

SECONDS_MAX = 30

Id = Annotated[UUID, typer.Argument(metavar="ID", help="As `lorebus pending list` shows it.")]


@app.callback()
def pending() -> None:
    """Decide about memories that wait.

    Held ones hold risky text of an agent or from outside: they are recalled once they are released. Matched ones were
    stored before the gate had the pattern that matches them: they are kept, and withheld from recall.
    """


@app.command("list")
def list_pending(
    text: Annotated[
        bool, typer.Option("--text", help="Show what they say: it may be an attack on who reads it.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many, longest waiting first.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON array on stdout.")] = False,
    tenant: Tenant = "default",
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """Show what waits, since when and for which patterns.

    Example: lorebus pending list --text
    """
    items = run(_find(data, tenant, limit))
    if as_json:
        show_json([render_json(item, text=text) for item in items])
    elif items:
        show_items(items, text=text)
    else:
        out.print("No memory waits.")


@app.command()
def release(item_id: Id, tenant: Tenant = "default", data: DataFolder = DATA_DEFAULT) -> None:
    """Let a held memory be recalled, from now on. It keeps its tier.

    Example: lorebus pending release 0199c2d4-5a1e-7c60-9a51-3f6f0b6f2a11
    """
    decision = run(_decide(data, tenant, lambda waiting: waiting.release(tenant, item_id, actor=find_actor())))
    if decision.replaced_by:
        out.print(plain(f"{item_id} is released; newer evidence has replaced it: {decision.replaced_by}."))
    else:
        out.print(plain(f"{item_id} is released{_and_did('replaced', decision.replaced)}."))


@app.command()
def refuse(item_id: Id, tenant: Tenant = "default", data: DataFolder = DATA_DEFAULT) -> None:
    """Delete a waiting memory for good. What it had replaced is recalled again.

    Example: lorebus pending refuse 0199c2d4-5a1e-7c60-9a51-3f6f0b6f2a11
    """
    refused = run(_decide(data, tenant, lambda waiting: waiting.refuse(tenant, item_id, actor=find_actor())))
    out.print(plain(f"{item_id} is deleted{_and_did('brought back', refused.restored)}."))


async def _find(data: Path, tenant: str, limit: int) -> list[PendingItem]:
    subject_for(RUN_FINISHED, tenant)  # refuses what cannot be a tenant
    async with open_database(data) as engine, asyncio.timeout(SECONDS_MAX):
        return await find_pending(engine, tenant, limit)


async def _decide(data: Path, tenant: str, decide: Callable[[Pending], Awaitable[ResultT]]) -> ResultT:
    subject_for(RUN_FINISHED, tenant)
    async with open_database(data) as engine, asyncio.timeout(SECONDS_MAX):
        return await decide(Pending(engine, AdministeredSettings(engine)))


def render_json(item: PendingItem, *, text: bool) -> dict[str, Any]:
    fields = asdict(item) | {"id": str(item.id), "patterns": list(item.patterns)}
    return fields if text else {name: value for name, value in fields.items() if name not in ("summary", "rationale")}


def show_items(items: Sequence[PendingItem], *, text: bool) -> None:
    columns = ("id", "since", "repository", "state", "tier", "written by", "patterns")
    show_table((*columns, "text") if text else columns, [_row(item, text=text) for item in items])


def _row(item: PendingItem, *, text: bool) -> tuple[object, ...]:
    since, writer = f"{item.since:%m-%d %H:%M}", item.written_by or ""
    row = (item.id, since, item.repository, item.state, item.tier, writer, ", ".join(item.patterns))
    return (*row, f"{item.summary}\n{item.rationale}") if text else row


def _and_did(what: str, ids: Sequence[UUID]) -> str:
    return f", and {what}: {', '.join(map(str, ids))}" if ids else ""
