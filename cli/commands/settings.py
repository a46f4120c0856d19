"""`lorebus settings`: how the memory behaves, kept in the database and changed while everything runs."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from lorebus.contracts.subjects import RUN_FINISHED, subject_for
from rich.text import Text

from cli.actor import find_actor
from cli.endpoints import DATA_DEFAULT, DataFolder, Tenant
from cli.loading import new_app
from cli.output import note, out, plain, show_json, show_table
from cli.running import run
from cli.stores import open_database
from libs.common.administered_settings import CACHE_SECONDS, AdministeredSettings, find_stored
from libs.common.domain.setting_cascade import PLATFORM, Address, Owner, Place, Stored, resolve
from libs.common.domain.setting_keys import KEYS, Key, Level, check_setting, get_key
from libs.common.errors import SettingRefused

app = new_app()

ResultT = TypeVar("ResultT")

BUILT_IN = "built in"
SECONDS_MAX = 30
WHEN = f"Services see it within {CACHE_SECONDS:g} seconds."

Name = Annotated[str, typer.Argument(metavar="KEY", help="As `lorebus settings list` shows it.")]
Team = Annotated[str | None, typer.Option(help="For this team.")]
Organization = Annotated[str | None, typer.Option(help="For this organization.")]
Channel = Annotated[str | None, typer.Option(help="For this channel.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout.")]


@app.callback()
def settings() -> None:
    """Show and change how the memory behaves.

    A value is taken from the nearest level that has one: channel, team, organization, platform, else what is built in.
    Services see a change within half a minute; who changed what is kept in the table `audit`.
    """


@app.command("list")
def list_settings(
    team: Team = None,
    organization: Organization = None,
    channel: Channel = None,
    as_json: AsJson = False,
    tenant: Tenant = "default",
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """Show every setting: its value, where that comes from, and what it does.

    Example: lorebus settings list --team payments --organization acme
    """
    stored = run(_find(data, tenant))
    owner = Owner(channel, team, organization)
    if as_json:
        show_json([render_json(key, stored, owner) for key in KEYS.values()])
    else:
        show_settings(KEYS.values(), stored, owner)
    note_faults(stored.faults)


@app.command()
def get(
    key: Name,
    team: Team = None,
    organization: Organization = None,
    channel: Channel = None,
    as_json: AsJson = False,
    tenant: Tenant = "default",
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """Show one setting.

    Example: lorebus settings get memory.lessonMaxAgeDays --team payments
    """
    with refusals_as_usage():
        wanted = get_key(key)
    stored = run(_find(data, tenant))
    owner = Owner(channel, team, organization)
    if as_json:
        show_json(render_json(wanted, stored, owner))
    else:
        show_settings([wanted], stored, owner)
    note_faults(fault for fault in stored.faults if fault.key == key)


# Without this, -1 would be an unknown option, not a value that is out of range.
@app.command("set", context_settings={"ignore_unknown_options": True})
def set_value(
    key: Name,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="A number, true or false, or text.")],
    team: Team = None,
    organization: Organization = None,
    channel: Channel = None,
    tenant: Tenant = "default",
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """Set a value, for the whole platform where no level is named.

    Example: lorebus settings set memory.lessonMaxAgeDays 90

    Example: lorebus settings set memory.lessonMaxAgeDays 30 --team payments
    """
    with refusals_as_usage():
        place = find_place(team, organization, channel)
        checked = check_setting(key, read_value(value), place.level)
    run(_change(data, tenant, lambda all_: all_.set(key, checked, tenant=tenant, actor=find_actor(), place=place)))
    out.print(plain(f"{key} is {json.dumps(checked)} for {render_place(place)}. {WHEN}"))


@app.command()
def unset(
    key: Name,
    team: Team = None,
    organization: Organization = None,
    channel: Channel = None,
    tenant: Tenant = "default",
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """Take a value away, so that the next level's holds again.

    Example: lorebus settings unset memory.lessonMaxAgeDays --team payments
    """
    with refusals_as_usage():
        place = find_place(team, organization, channel)
        get_key(key)
    was_set = run(_change(data, tenant, lambda all_: all_.unset(key, tenant=tenant, actor=find_actor(), place=place)))
    if was_set:
        out.print(plain(f"{key} is not set for {render_place(place)} any more. {WHEN}"))
    else:
        note(f"{key} was not set for {render_place(place)}: nothing is changed")


def find_place(team: str | None, organization: str | None, channel: str | None) -> Place:
    """The level that the options name. Raises SettingRefused for two at once."""
    named: dict[Level, str | None] = {"channel": channel, "team": team, "organization": organization}
    places = [Place(level, name) for level, name in named.items() if name is not None]
    if len(places) > 1:
        raise SettingRefused("a value is set at one level: name a team, an organization or a channel")
    return places[0] if places else PLATFORM


def read_value(text: str) -> object:
    """Numbers, true and false as JSON has them; anything else is text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


@contextmanager
def refusals_as_usage() -> Generator[None]:
    """What cannot be set is wrong usage: exit code 2."""
    try:
        yield
    except SettingRefused as error:
        raise typer.BadParameter(str(error)) from error


async def _find(data: Path, tenant: str) -> Stored:
    subject_for(RUN_FINISHED, tenant)  # refuses what cannot be a tenant
    async with open_database(data) as engine, asyncio.timeout(SECONDS_MAX):
        return await find_stored(engine, tenant)


async def _change(data: Path, tenant: str, change: Callable[[AdministeredSettings], Awaitable[ResultT]]) -> ResultT:
    subject_for(RUN_FINISHED, tenant)
    async with open_database(data) as engine, asyncio.timeout(SECONDS_MAX):
        return await change(AdministeredSettings(engine))


def render_place(place: Place | None) -> str:
    if place is None:
        return BUILT_IN
    return "the whole platform" if place == PLATFORM else str(place)


def render_json(key: Key[Any], stored: Stored, owner: Owner) -> dict[str, object]:
    found = resolve(key, stored, owner)
    return {
        "key": key.name,
        "value": found.value,
        "from": found.place and {"level": found.place.level, "name": found.place.name or None},
        "default": key.default,
        "range": key.range.words,
        "levels": key.levels,
        "read_by": key.read_by,
        "meaning": key.meaning,
    }


def show_settings(keys: Iterable[Key[Any]], stored: Stored, owner: Owner) -> None:
    rows = [(key, resolve(key, stored, owner)) for key in keys]
    show_table(
        ("setting", "value", "from", "what it does"),
        [(key.name, json.dumps(found.value), render_place(found.place), _explain(key)) for key, found in rows],
    )


def _explain(key: Key[Any]) -> Text:
    where = f"{key.range.words}; default {json.dumps(key.default)}; set per {', '.join(key.levels)}; for {key.read_by}"
    return Text.assemble(plain(key.meaning), "\n", plain(where, "dim"))


def note_faults(faults: Iterable[Address]) -> None:
    """What is stored and counts for nothing, with the remedy."""
    for key, level, name in sorted(faults):
        option = f" --{level} {name}" if name else ""
        remedy = f"`lorebus settings unset {key}{option}`" if key in KEYS else "this version does not know it"
        note(f"{key}: the value stored for the {level}{f' {name}' if name else ''} counts for nothing: {remedy}")
