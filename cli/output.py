"""What people and programs see: results on stdout, everything else on stderr."""

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import typer
from lorebus import LorebusError
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from rich.text import Text

out = Console(highlight=False)
notes = Console(stderr=True, highlight=False)

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def plain(text: object, style: str = "") -> Text:
    """Text from outside: neither markup nor control sequences of it reach the terminal."""
    return Text(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(text)), style=style)


def show_json(value: object) -> None:
    """One line of JSON on stdout."""
    typer.echo(json.dumps(value, ensure_ascii=False, default=_jsonable))


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else plain(cell) for cell in row))
    out.print(table)


def note(text: object, style: str = "yellow") -> None:
    """A line for a person, on stderr."""
    notes.print(plain(text, style), soft_wrap=True)


def fail(error: LorebusError) -> typer.Exit:
    """The error as one red line that names the remedy. `raise fail(error)` ends with exit code 1."""
    notes.print(Text.assemble(("error: ", "bold red"), plain(error, "red")), soft_wrap=True)
    return typer.Exit(1)


def _jsonable(value: object) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value)
