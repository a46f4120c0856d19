"""The report of recall's evaluation as a person reads it, with bars; a picture of it is an SVG file."""

import io
from collections.abc import Sequence
from pathlib import Path

from rich.bar import Bar as Beam
from rich.console import Console, Group, RenderableType
from rich.table import Table

from cli.evaluations.recall.figures import Mean
from cli.evaluations.recall.report import RecallReport, SetReport
from cli.evaluations.tables import build_bars
from cli.output import out, plain

BEAM_WIDTH = 25
PICTURE_WIDTH = 110


def show_recall(report: RecallReport) -> None:
    out.print(_render(report))


def save_picture(report: RecallReport, path: Path) -> None:
    console = Console(record=True, width=PICTURE_WIDTH, file=io.StringIO())
    console.print(_render(report))
    console.save_svg(str(path), title=f"recall with {report.embedder}")


def _render(report: RecallReport) -> RenderableType:
    how = "over the bus" if report.is_served else "in process"
    title = plain(f"recall with {report.embedder}, {how}\n")
    return Group(title, *(part for one in report.sets for part in _render_set(one)), build_bars(report.bars))


def _render_set(one: SetReport) -> Sequence[RenderableType]:
    title = f"{one.form.title}: {len(one.outcomes)} questions, {one.memories} memories"
    figures = _table("", ("%", "95 % interval", ""))
    for name, mean in one.figures.items():
        figures.add_row(plain(name), *_cells(mean), Beam(1.0, 0.0, mean.value, width=BEAM_WIDTH))
    less = _table("R@5 less that of", ("%", "95 % interval"))
    for name, mean in one.differences.items():
        less.add_row(plain(name), *_cells(mean, sign="+"))
    return [plain(title, "bold"), figures, less, plain("")]


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(title, min_width=22)
    for column in columns:
        table.add_column(column, justify="right" if column else "left")
    return table


def _cells(mean: Mean, sign: str = "") -> tuple[str, str]:
    low, high = 100 * mean.low, 100 * mean.high
    return f"{100 * mean.value:{sign}.1f}", f"{low:{sign}.1f} to {high:{sign}.1f}"
