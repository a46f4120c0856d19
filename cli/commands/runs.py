"""`lorebus runs`: what became of each event."""

import asyncio
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.text import Text

from cli.endpoints import DATA_DEFAULT, DataFolder, Tenant
from cli.loading import new_app
from cli.output import out, plain, show_json, show_table
from cli.running import run
from cli.stores import open_database
from libs.common.inbox import Event, find_events
from libs.common.run_lessons import RunLesson, RunLessons, find_run_lessons

app = new_app()

SUMMARY_CHARS_SHOWN = 160

STYLES = {"written": "green", "skipped": "dim", "refused": "red", "dead": "bold red", "claimed": "yellow"}


@app.command()
def runs(
    run_id: Annotated[
        str | None, typer.Argument(metavar="[RUN_ID]", help="Show what this run was given, and what it wrote.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many, newest first.")] = 50,
    status: Annotated[
        str | None, typer.Option(help="Only those that are claimed, written, skipped, refused or dead.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON array on stdout.")] = False,
    tenant: Tenant = "default",
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """Show what became of each event that was published.

    Every acknowledged run ends in one state: a lesson was written, there was nothing to learn, the gate refused it,
    or it is a dead letter; `claimed` means that the writer is at it. --json tells everything, run ids included.

    With a run's id: the lessons that its agents recalled, and those that it left behind.

    Examples: lorebus runs --status refused · lorebus runs my-run-42
    """
    if status is not None and status not in STYLES:
        raise typer.BadParameter(f"--status is one of {', '.join(STYLES)}")
    if run_id is not None:
        _show_lessons(run(_find_lessons(data, tenant, run_id)), run_id, as_json=as_json)
        return
    events = run(_find(data, tenant, status, limit))
    if as_json:
        show_json([_as_json(event) for event in events])
    elif events:
        show_table(("seen", "repository", "status", "lesson or reason"), [_as_row(event) for event in events])
    else:
        out.print("Nothing was published yet. Try `lorebus publish FILE…`.")


async def _find(data: DataFolder, tenant: str, status: str | None, limit: int) -> list[Event]:
    async with open_database(data) as engine, asyncio.timeout(30):
        return await find_events(engine, tenant, status=status, limit=limit)


async def _find_lessons(data: DataFolder, tenant: str, run_id: str) -> RunLessons:
    async with open_database(data) as engine, asyncio.timeout(30):
        return await find_run_lessons(engine, tenant, run_id)


def _show_lessons(lessons: RunLessons, run_id: str, *, as_json: bool) -> None:
    if as_json:
        show_json({"recalled": list(map(asdict, lessons.recalled)), "written": list(map(asdict, lessons.written))})
    elif not lessons.recalled and not lessons.written:
        out.print(plain(f"The run {run_id} was given no lesson and wrote none."))
    else:
        rows = [("recalled by " + ", ".join(one.agents), one) for one in lessons.recalled]
        rows += [("written", one) for one in lessons.written]
        show_table(("what", "lesson", "now", "summary"), [_lesson_row(what, one) for what, one in rows])


def _lesson_row(what: str, lesson: RunLesson) -> tuple[object, ...]:
    return what, lesson.id, lesson.state, (lesson.summary or "")[:SUMMARY_CHARS_SHOWN]


def _as_row(event: Event) -> tuple[object, ...]:
    what = [str(id_) for id_ in event.item_ids] or [event.reason or "", *event.patterns]
    state = Text(event.status, style=STYLES[event.status])
    return f"{event.first_seen_at:%m-%d %H:%M}", event.repository or event.event_id, state, " ".join(filter(None, what))


def _as_json(event: Event) -> dict[str, Any]:
    return {**event.__dict__, "item_ids": [str(id_) for id_ in event.item_ids]}
