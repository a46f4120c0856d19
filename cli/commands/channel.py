"""`lorebus channel`: the directory of chat channels, and what a channel remembers."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from lorebus import LorebusError
from lorebus.channels import ChatChannel
from lorebus.contracts.channels import ChannelEntry, ChannelQuestion, EditReply, split_channel_key
from lorebus.contracts.envelope import build_message
from lorebus.contracts.recall import RecalledItem
from lorebus.contracts.subjects import CHANNEL_SET, subject_for

from cli.actor import find_actor
from cli.endpoints import DATA_DEFAULT, DataFolder, NatsUrl, Tenant
from cli.loading import new_app
from cli.output import note, out, plain, show_json, show_table
from cli.running import FAILED, Target, run
from cli.stores import open_database
from libs.common.administered_settings import AdministeredSettings
from libs.common.channels import CHANGEABLE, Channel, ChannelDirectory

app = new_app()

ResultT = TypeVar("ResultT")

SECONDS_MAX = 30
MEMORIES_MAX = 50
_FLAGS = (
    ("private", "is_private"),
    ("active", "is_active"),
    ("passive ingest", "passive_ingest_enabled"),
    ("consolidation", "consolidation_enabled"),
    ("org flagging", "org_flagging_enabled"),
)

Name = Annotated[str, typer.Argument(metavar="CHANNEL", help="ORGANIZATION/ID, or the id alone where there is none.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout.")]


class ChannelUnknown(LorebusError):
    """Nobody registered this channel."""


@app.callback()
def channel() -> None:
    """Show and change the directory of chat channels: whose each is, who may read it, what it has opted in to.

    Limits and budgets are settings: `lorebus settings set channel.monthlyBudgetUsd 5 --channel acme/C024BE7LH`.
    """


@app.command("list")
def list_channels(as_json: AsJson = False, tenant: Tenant = "default", data: DataFolder = DATA_DEFAULT) -> None:
    """Show every channel.

    Example: lorebus channel list
    """
    show(run(_look(data, tenant, lambda directory: directory.find_all(tenant))), as_json=as_json)


@app.command("show")
def show_channel(
    name: Name,
    memories: Annotated[bool, typer.Option("--memories", help="Also its newest memories, with their ids.")] = False,
    as_json: AsJson = False,
    tenant: Tenant = "default",
    nats_url: NatsUrl = None,
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """Show one channel.

    Example: lorebus channel show acme/C024BE7LH --memories
    """
    key = check_name(name)
    found = run(_look(data, tenant, lambda directory: directory.find(tenant, key)))
    if found is None:
        note(f"nobody registered {key}", "red")
        raise typer.Exit(FAILED)
    items = run(_find_memories(Target(nats_url, data, tenant), key)) if memories else []
    if as_json:
        show_json({**_entry_json(found), **({"memories": [_item_json(one) for one in items]} if memories else {})})
        return
    show([found])
    if items:
        show_table(("id", "memory"), [(item.id, item.summary) for item in items])


@app.command("set")
def set_channel(
    name: Name,
    team: Annotated[str | None, typer.Option(help="Whose it is.")] = None,
    private: Annotated[
        bool | None, typer.Option("--private/--public", help="Whether other channels of its team may read it.")
    ] = None,
    active: Annotated[
        bool | None, typer.Option("--active/--inactive", help="Whether anything is written to it.")
    ] = None,
    passive_ingest: Annotated[
        bool | None, typer.Option("--passive-ingest/--no-passive-ingest", help="Whether people's messages are read.")
    ] = None,
    consolidation: Annotated[
        bool | None, typer.Option("--consolidation/--no-consolidation", help="Whether ambient passes merge its notes.")
    ] = None,
    org_flagging: Annotated[
        bool | None, typer.Option("--org-flagging/--no-org-flagging", help="Whether it hears of other teams' notes.")
    ] = None,
    tenant: Tenant = "default",
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """Change what you name; it counts at the next read, and has a row in the table `audit`.

    Example: lorebus channel set acme/C024BE7LH --private --passive-ingest
    """
    given = (team, private, active, passive_ingest, consolidation, org_flagging)
    changes = {field: value for field, value in zip(CHANGEABLE, given, strict=True) if value is not None}
    if not changes:
        raise typer.BadParameter("name what is to be changed")
    key = check_name(name, team)
    changed = run(_look(data, tenant, lambda one: one.change(tenant, key, changes, actor=find_actor())))
    show([changed])


@app.command()
def edit(
    name: Name,
    memory_id: Annotated[str, typer.Argument(metavar="ID", help="As `lorebus channel show --memories` shows it.")],
    summary: Annotated[str | None, typer.Option(help="What it says from now on.")] = None,
    rationale: Annotated[str | None, typer.Option(help="What it rests on from now on.")] = None,
    tenant: Tenant = "default",
    nats_url: NatsUrl = None,
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """Give one memory of a channel other words. `lorebus forget ID` takes it away.

    Example: lorebus channel edit acme/C024BE7LH 0199c2d4-5a1e-7c60-9a51-3f6f0b6f2a11 --summary "…"
    """
    if summary is None and rationale is None:
        raise typer.BadParameter("name a --summary or a --rationale")
    key = check_name(name)
    reply = run(_edit(Target(nats_url, data, tenant), key, memory_id, summary, rationale))
    if reply.error:
        note(f"{reply.error}: {reply.reason}{' ' if reply.patterns else ''}{', '.join(reply.patterns)}", "red")
        raise typer.Exit(FAILED)
    out.print(plain(f"{reply.id} says so from now on."))


def check_name(name: str, team: str | None = None) -> str:
    """The channel's key. What cannot be one is wrong usage."""
    org_id, id_ = split_channel_key(name)
    try:
        build_message(ChannelQuestion, {"channel": id_, "org_id": org_id})
        build_message(ChannelQuestion, {"channel": "C", "org_id": team})
    except LorebusError as error:
        raise typer.BadParameter(str(error)) from error
    return name


async def _look(data: Path, tenant: str, look: Callable[[ChannelDirectory], Awaitable[ResultT]]) -> ResultT:
    subject_for(CHANNEL_SET, tenant)  # refuses what cannot be a tenant
    async with open_database(data) as engine, asyncio.timeout(SECONDS_MAX):
        return await look(ChannelDirectory(engine, AdministeredSettings(engine)))


async def _find_memories(target: Target, key: str) -> list[RecalledItem]:
    async with target.connect() as memory:
        org_id, id_ = split_channel_key(key)
        reply = await memory.channel(id_, org_id=org_id).recall("*", limit=MEMORIES_MAX, deadline_seconds=SECONDS_MAX)
    if reply.degraded:
        raise ChannelUnknown(f"its memories could not be read: {reply.reason}")
    return reply.items


async def _edit(target: Target, key: str, memory_id: str, summary: str | None, rationale: str | None) -> EditReply:
    async with target.connect() as memory:
        org_id, id_ = split_channel_key(key)
        channel: ChatChannel = memory.channel(id_, org_id=org_id)
        return await channel.edit(memory_id, actor=find_actor(), summary=summary, rationale=rationale)


def show(found: list[Channel], *, as_json: bool = False) -> None:
    if as_json:
        show_json([_entry_json(one) for one in found])
        return
    columns = ("channel", "team", *(title for title, _ in _FLAGS), "read up to")
    rows = [
        (one.key, one.team_id or "–", *(_word(getattr(one, name)) for _, name in _FLAGS), one.ingest_cursor or "–")
        for one in found
    ]
    show_table(columns, rows)


def _word(flag: bool) -> str:
    return "yes" if flag else "no"


def _entry_json(channel: Channel) -> dict[str, Any]:
    return {"key": channel.key, **{name: getattr(channel, name) for name in ChannelEntry.model_fields}}


def _item_json(item: RecalledItem) -> dict[str, Any]:
    return {"id": item.id, "summary": item.summary, "created_at": item.created_at}
