"""The report of an evaluation as a person reads it."""

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from cli.evaluations.bars import Bar
from cli.evaluations.costs import Costs
from cli.evaluations.generality import Generality
from cli.evaluations.report import Report
from cli.evaluations.robustness import Robustness
from cli.evaluations.shares import Share
from cli.output import out, plain

SHARE_COLUMNS = ("n", "refused", "95 % interval")


def show_report(report: Report) -> None:
    out.print(plain(f"{len(report.judged)} texts, pattern set {report.pattern_set} of {report.patterns} patterns\n"))
    _show("group", SHARE_COLUMNS, [(group.name, *_cells(share)) for group, share in report.groups])
    _show_generality(report.generality)
    places = [(f"{place.source} / {place.kind}", place.label, place.refused) for place in report.sources]
    _show("attacks: source / kind", SHARE_COLUMNS, [(name, *_cells(share)) for name, label, share in places if label])
    _show(
        "benign: source / kind", SHARE_COLUMNS, [(name, *_cells(share)) for name, label, share in places if not label]
    )
    _show(
        "worst source",
        ("source", *SHARE_COLUMNS),
        [(group.name, source, *_cells(share)) for group, source, share in report.worst],
    )
    if report.robustness:
        _show_robustness(report.robustness)
    _show_costs(report.costs)
    out.print(build_bars(report.bars))
    if report.incomplete.hits:
        out.print(plain(f"\n{report.incomplete.hits} scans were not complete", "bold red"))


def _show_generality(generality: Sequence[Generality]) -> None:
    columns = ("n", "across sources", "95 % interval", "only held")
    rows = [(one.group.name, *_cells(one.across), f"{100 * one.held.value:.1f} %") for one in generality]
    _show("attacks: found by patterns of two sources", columns, rows)


def _show_robustness(robustness: Robustness) -> None:
    columns = ("n", "kept", "95 % interval")
    _show("attacks in disguise", columns, [(name, *_cells(share)) for name, share in robustness.disguises.items()])
    _show("benign in another form", columns, [(name, *_cells(share)) for name, share in robustness.forms.items()])


def _show_costs(costs: Costs) -> None:
    rows = [
        ("scan", f"{costs.scan_us_per_kb:.0f} µs/KB"),
        ("masking", f"{costs.mask_us_per_kb:.0f} µs/KB"),
        ("a text: p50, p99, max", f"{costs.p50_ms:.2f}, {costs.p99_ms:.2f}, {costs.max_ms:.2f} ms"),
        (f"a text of 4 kB ({costs.large_texts}): p99", f"{costs.large_p99_ms:.2f} ms"),
    ]
    _show("cost: CPU time of one core", ("",), rows)
    _show(
        "hostile 32 KiB",
        ("scan ms", "masking ms", "loop lag ms"),
        [(one.name, f"{one.scan_ms:.1f}", f"{one.mask_ms:.1f}", f"{one.lag_ms:.1f}") for one in costs.hostile],
    )


def build_bars(bars: Sequence[Bar]) -> Table:
    table = _table("bar", ("figure", "bar", ""))
    for bar in bars:
        verdict = Text("holds", "green") if bar.holds else Text("does not hold", "bold red")
        table.add_row(bar.name, f"{bar.figure:.2f} {bar.unit}", f"{bar.direction} {bar.limit:g} {bar.unit}", verdict)
    return table


def _show(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table = _table(title, columns)
    for row in rows:
        table.add_row(*map(plain, row))
    if table.row_count:
        out.print(table)
        out.print()


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(title, overflow="fold")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _cells(share: Share) -> tuple[str, str, str]:
    low, high = share.interval
    return str(share.total), f"{100 * share.value:.1f} %", f"{100 * low:.1f} to {100 * high:.1f} %"
