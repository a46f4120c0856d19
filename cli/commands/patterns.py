"""`lorebus patterns`: what the gate looks for, tried before it counts and changed while everything runs."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from cli.actor import find_actor
from cli.endpoints import DATA_DEFAULT, DataFolder
from cli.loading import new_app
from cli.output import note, out, plain, show_json, show_table
from cli.running import FAILED, run
from cli.stores import open_database
from services.gate.administration import Changed, HistoryEntry, PatternAdministration
from services.gate.patterns import Pattern, PatternRejected, Severity, parse_patterns
from services.gate.register import Registered, active_patterns, name_register
from services.gate.rules import verdict_of
from services.gate.scan import Scan
from services.gate.trial import build_untimed_scanner, find_faults, part_usable

app = new_app()

ResultT = TypeVar("ResultT")

SECONDS_MAX = 60
"""Compiling a large set takes some."""
FILE_BYTES_MAX = 1 << 20
LABELS_SHOWN_MAX = 5
WHEN = "Gates serve it within a few seconds."

Label = Annotated[str, typer.Argument(metavar="LABEL", help="As `lorebus patterns list` shows it.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout.")]


@app.callback()
def patterns() -> None:
    """Show and change what the gate looks for.

    A pattern that blocks refuses a text; one that watches lowers the trust in it. A changed set counts once it has
    passed its trial: the examples of all patterns, ordinary texts that it must let through, attacks that it must find.
    Gates try it again before they serve it. All tenants share the patterns; who changed what is kept in `audit`.
    """


@app.command("list")
def list_patterns(as_json: AsJson = False, data: DataFolder = DATA_DEFAULT) -> None:
    """Show every pattern, and the set that is in force.

    Example: lorebus patterns list
    """
    register = run(_administer(data, lambda administration: administration.find_register()))
    entries = [register[label] for label in sorted(register)]
    pattern_set = name_register(register)
    if as_json:
        show_json({"pattern_set": pattern_set, "patterns": [render_json(entry) for entry in entries]})
        return
    show_table(("label", "family", "severity", "origin", "state"), [render_row(entry) for entry in entries])
    out.print(
        plain(f"Set {pattern_set}: {len(active_patterns(register))} of {len(entries)} patterns are active.", "dim")
    )
    for fault in part_usable(active_patterns(register))[1]:
        note(f"counts for nothing: {fault.reason}")


@app.command("test")
def scan_text(
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="What to scan.")] = None,
    file: Annotated[Path | None, typer.Option(help="Scan this file; - is stdin.")] = None,
    as_json: AsJson = False,
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """Show which stored patterns match a text. Nothing is stored, and no gate is asked.

    Example: lorebus patterns test "Ignore all previous instructions."
    """
    if (text is None) == (file is None):
        raise typer.BadParameter("give a text, or a file with --file")
    wanted = text if file is None else read_file(file)
    register = run(_administer(data, lambda administration: administration.find_register()))
    scan = build_untimed_scanner(part_usable(active_patterns(register))[0]).scan(wanted or "", now=0.0)
    if as_json:
        show_json({"verdict": verdict_of(scan), "patterns": scan.matched, "watched": scan.watched})
    else:
        show_scan(scan)


@app.command()
def check(data: DataFolder = DATA_DEFAULT) -> None:
    """Hold the stored set against its examples and the smoke texts, as every gate does before it serves it.

    Example: lorebus patterns check
    """
    register = run(_administer(data, lambda administration: administration.find_register()))
    faults = find_faults(active_patterns(register))
    for fault in faults:
        out.print(plain(fault.reason))
    if faults:
        raise typer.Exit(FAILED)
    out.print(plain(f"Set {name_register(register)} passes."))


@app.command()
def add(
    label: Annotated[str | None, typer.Argument(metavar="[LABEL]", help="family.name")] = None,
    source: Annotated[str, typer.Option(help="The expression (RE2: no look-around).")] = "",
    flags: Annotated[str, typer.Option(help="Of i, m, s and u.")] = "",
    severity: Annotated[str, typer.Option(help="block or watch")] = "block",
    must_match: Annotated[list[str] | None, typer.Option(help="An example it has to find; may be repeated.")] = None,
    must_not_match: Annotated[list[str] | None, typer.Option(help="One it must not; may be repeated.")] = None,
    file: Annotated[Path | None, typer.Option(help="Patterns as [[pattern]] tables of TOML, all or none.")] = None,
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """Add a pattern, or several from a file. To change one, add it under another label and remove the old one.

    Example: lorebus patterns add exfiltration.pastebin --source 'paste(bin)?[.]example' --flags i
    --must-match 'post it to paste.example' --must-not-match 'paste the log here'

    Example: lorebus patterns add --file patterns.toml
    """
    if (label is None) == (file is None):
        raise typer.BadParameter("give a label with its --source, or a file with --file")
    with rejections_as_usage():
        named = Pattern(label or "", source, flags, tuple(must_match or ()), tuple(must_not_match or ()))
        new = parse_patterns(read_file(file)) if file else (replace(named, severity=read_severity(severity)),)
    show_changed(run(_administer(data, lambda administration: administration.add(new, actor=find_actor()))))


@app.command()
def disable(label: Label, data: DataFolder = DATA_DEFAULT) -> None:
    """Take a pattern out of the set, and keep it.

    Example: lorebus patterns disable act-as.order
    """
    _set_active(label, False, data)


@app.command()
def enable(label: Label, data: DataFolder = DATA_DEFAULT) -> None:
    """Put a pattern back into the set.

    Example: lorebus patterns enable act-as.order
    """
    _set_active(label, True, data)


@app.command()
def remove(label: Label, data: DataFolder = DATA_DEFAULT) -> None:
    """Delete a pattern that was added. Built-in ones can only be disabled.

    Example: lorebus patterns remove exfiltration.pastebin
    """
    show_changed(run(_administer(data, lambda administration: administration.remove(label, actor=find_actor()))))


@app.command()
def history(
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many changes of one pattern each.")] = 200,
    as_json: AsJson = False,
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """Show who changed what, the newest first.

    Example: lorebus patterns history --limit 20
    """
    entries = run(_administer(data, lambda administration: administration.find_history(limit)))
    if as_json:
        show_json([asdict(entry) for entry in entries])
    else:
        show_table(("when", "who", "what", "patterns"), render_history(entries))


async def _administer(data: Path, ask: Callable[[PatternAdministration], Awaitable[ResultT]]) -> ResultT:
    async with open_database(data) as engine, asyncio.timeout(SECONDS_MAX):
        return await ask(PatternAdministration(engine))


def _set_active(label: str, is_active: bool, data: Path) -> None:
    show_changed(
        run(_administer(data, lambda administration: administration.set_active(label, is_active, actor=find_actor())))
    )


def read_file(path: Path) -> str:
    """UTF-8 text of a file, `-` for stdin. Raises BadParameter."""
    try:
        body = sys.stdin.buffer.read(FILE_BYTES_MAX + 1) if path == Path("-") else path.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be read: {error.strerror}") from error
    if len(body) > FILE_BYTES_MAX:
        raise typer.BadParameter(f"{path} is larger than {FILE_BYTES_MAX >> 20} MiB")
    return body.decode("utf-8", "replace")


def read_severity(word: str) -> Severity:
    if word not in ("block", "watch"):
        raise PatternRejected("severity is block or watch")
    return word


@contextmanager
def rejections_as_usage() -> Generator[None]:
    """What is no pattern is wrong usage: exit code 2."""
    try:
        yield
    except PatternRejected as error:
        raise typer.BadParameter(str(error)) from error


def render_row(entry: Registered) -> tuple[str, ...]:
    origin = "built in" if entry.is_built_in else "added"
    state = "active" if entry.is_active else "disabled"
    return entry.pattern.label, entry.pattern.family, entry.pattern.severity, origin, state


def render_json(entry: Registered) -> dict[str, object]:
    state = {"is_built_in": entry.is_built_in, "is_active": entry.is_active}
    return {**asdict(entry.pattern), "family": entry.pattern.family, **state}


def show_scan(scan: Scan) -> None:
    out.print(plain(verdict_of(scan), "bold"))
    labels = [("blocks", label) for label in scan.matched] + [("watches", label) for label in scan.watched]
    for what, label in labels:
        out.print(plain(f"{what}  {label}"))


def show_changed(changed: Changed) -> None:
    if not changed.differences:
        note("it is so already: nothing is changed")
        return
    for difference in changed.differences:
        out.print(plain(f"{difference.label} is {difference.action}."))
    out.print(plain(f"The set is now {changed.pattern_set}. {WHEN}"))


def render_history(entries: Iterable[HistoryEntry]) -> list[tuple[str, ...]]:
    """One line for all that one change did alike: a new version brings a hundred patterns at once."""
    groups = groupby(entries, key=lambda entry: (entry.at, entry.actor, entry.action))
    return [
        (f"{at:%Y-%m-%d %H:%M:%S}", actor, action.removeprefix("pattern."), _name_some([e.label for e in group]))
        for (at, actor, action), group in groups
    ]


def _name_some(labels: Sequence[str]) -> str:
    named = ", ".join(labels[:LABELS_SHOWN_MAX])
    more = len(labels) - LABELS_SHOWN_MAX
    return f"{named} and {more} more" if more > 0 else named
