"""`lorebus bench`: measures this machine, with servers of its own in a temporary folder."""

from typing import Annotated

import typer
from rich.table import Table

from cli.benchmarks.consolidation import SHARE_MAX, bench_consolidation
from cli.benchmarks.consolidation import Report as ConsolidationReport
from cli.benchmarks.recall import FRESH_FACTOR, KNOWN_FACTOR, Report, bench_recall
from cli.loading import new_app
from cli.output import out, plain, show_json
from cli.running import FAILED, run

app = new_app()

PARTS = {
    "empty": "empty request-reply, FastStream",
    "bare": "empty request-reply, bare client",
    "query": "query: words, background",
    "embed": "embedding",
    "statement": "statement (Postgres)",
    "screen": "gate.screen, only where its set changed",
    "render": "reply and prompt block",
    "recall": "whole recall over the bus, asked before",
    "fresh": "whole recall over the bus, never asked before",
}
"""By the name of the part in `--json`, in the order of the table."""
BOLD = ("recall", "fresh")


@app.callback()
def bench() -> None:
    """Measure this machine, with servers of its own in a temporary folder."""


@app.command()
def recall(
    lessons: Annotated[int, typer.Option(min=10, max=100_000, help="How many lessons the scope holds.")] = 1_000,
    repeats: Annotated[int, typer.Option(min=20, max=100_000, help="How often each part is measured.")] = 300,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """How long a recall takes, and its parts.

    Stores synthetic lessons over the bus, then measures the parts in turn, so that a busy machine slows all of them
    alike. A recall is to take no longer than four empty request-replies and one embedding, and than three where the
    same was asked before; the exit code is 1 when it does.

    Example: lorebus bench recall --lessons 1000
    """
    report = run(bench_recall(lessons, repeats))
    if as_json:
        show_json(report.as_json())
    else:
        show_report(report)
    if not report.holds:
        raise typer.Exit(FAILED)


@app.command()
def consolidate(
    items: Annotated[int, typer.Option(min=100, max=20_000, help="How many memories the scope holds.")] = 20_000,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """How much CPU it takes to find what is alike, against a self join in SQL.

    Ours is to take at most an eighth; the exit code is 1 when it takes more. Below some thousand items fixed costs
    weigh more than what is measured.

    Example: lorebus bench consolidate --items 5000
    """
    found = run(bench_consolidation(items))
    if as_json:
        show_json(found.as_json())
    else:
        show_consolidation(found)
    if found.share > SHARE_MAX:
        raise typer.Exit(FAILED)


def show_consolidation(found: ConsolidationReport) -> None:
    out.print(
        plain(
            f"{found.items} items of {found.dimensions} dimensions, {found.pairs} pairs alike, "
            f"{found.clusters} clusters; the event loop stood still for {found.loop_stall_ms:.0f} ms at most"
        )
    )
    verdict = "holds" if found.share <= SHARE_MAX else "does not hold"
    line = (
        f"clusters {found.ours_cpu_seconds:.2f} s of CPU / self join {found.join_cpu_seconds:.2f} s = "
        f"{found.share:.3f}: at most {SHARE_MAX:g} {verdict}"
    )
    out.print(plain(line, "green" if found.share <= SHARE_MAX else "bold red"))


def show_report(report: Report) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("part")
    for column in ("p50 ms", "p95 ms", "own CPU ms"):
        table.add_column(column, justify="right")
    for name, words in PARTS.items():
        timing = report.timings[name]
        figures = (timing.p50_ms, timing.p95_ms, timing.cpu_p50_ms)
        table.add_row(
            words, *(f"{figure:.2f}" for figure in figures), style="bold" if name in ("recall", "fresh") else ""
        )
    out.print(table)
    out.print(
        plain(
            f"\n{report.lessons} lessons in the scope, {report.repeats} of each part in turn; services, client and "
            "the empty service share one process and one event loop. Own CPU is that of this process; the rest is "
            "Postgres, nats-server and waiting.",
            "dim",
        )
    )
    bounds = (
        ("fresh", f"{FRESH_FACTOR} x empty + embedding", report.fresh_bound_ms, report.fresh_ratio),
        ("recall", f"{KNOWN_FACTOR} x empty", report.known_bound_ms, report.known_ratio),
    )
    for name, words, bound_ms, ratio in bounds:
        line = f"{PARTS[name]} {report.timings[name].p50_ms:.2f} ms / ({words} = {bound_ms:.2f} ms) = {ratio:.2f}"
        verdict = "holds" if ratio <= 1 else "does not hold"
        out.print(plain(f"{line}: at most 1 {verdict}", "green" if ratio <= 1 else "bold red"))
