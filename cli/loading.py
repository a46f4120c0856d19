"""Imports a command when it is asked for: `lorebus --help` must not wait for what one command needs.

For the list of commands a stub with the help line stands in. This is the one place that imports by name.
"""

from importlib import import_module
from importlib.metadata import version
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command


def new_app() -> typer.Typer:
    """What a command's module decorates its functions with."""
    return typer.Typer(add_completion=False, rich_markup_mode="markdown")


class LazyGroup(TyperGroup):
    """A group whose commands are modules of `cli.commands`, named in `commands_by_name`."""

    commands_by_name: ClassVar[dict[str, str]] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, help_line in self.commands_by_name.items():
            self.add_command(TyperCommand(name, help=help_line))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, stub, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name and stub else None, rest


def load_command(name: str) -> Any:
    """The real command, from its module."""
    module = import_module(f"cli.commands.{name}")
    command = get_command(module.app)
    command.name = name
    return command


def render_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lorebus {version('lorebus-server')}")
        raise typer.Exit
