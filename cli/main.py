"""The `lorebus` command. Adding a command: one line in COMMANDS and its module in `cli/commands`."""

from typing import Annotated, Any

import typer

from cli.loading import LazyGroup, render_version

COMMANDS = {
    "up": "Run everything on this machine.",
    "demo": "See it work on real runs, then stop.",
    "publish": "Publish finished runs from JSON files.",
    "recall": "Ask what earlier runs learned about something.",
    "explain": "Show where a lesson came from.",
    "tap": "Watch what the memory does, live.",
    "runs": "Show what became of each event.",
    "channel": "Show and change the directory of chat channels.",
    "settings": "Show and change how the memory behaves.",
    "patterns": "Show and change what the gate looks for.",
    "pending": "Release or refuse memories that wait for you.",
    "forget": "Forget memories, in every copy.",
    "vacuum": "Free what was forgotten in the database's files.",
    "consolidate": "Merge memories that say the same.",
    "reembed": "Embed the memories with another model.",
    "doctor": "Check every part and say what to do.",
    "migrate": "Bring the database and the bus to this version.",
    "serve": "Run services in this process.",
    "bench": "Measure this machine.",
    "eval": "Judge the gate, or recall, on labelled data.",
}
"""Name: its line in `lorebus --help`. The module is `cli.commands.<name>`, the value in it `app`."""


class CommandGroup(LazyGroup):
    commands_by_name = COMMANDS


app = typer.Typer(
    cls=CommandGroup,
    name="lorebus",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_show_locals=False,
)


@app.callback()
def lorebus(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=render_version, is_eager=True)
    ] = False,
) -> None:
    """Memory for coding agents: finished runs become lessons, lessons reach the next run.

    Start everything on this machine with `lorebus up`. Exit codes: 0 done, 1 failed, 2 wrong usage.
    """


def main() -> Any:
    return app()
