"""What happened in a demo: made by `story`, shown by `view`."""

from dataclasses import dataclass
from pathlib import Path

from lorebus import RecallReply

from cli.examples import ExampleQuestion
from libs.common.inbox import Event


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """A run file, what became of it, and whether the demo had published it before."""

    file: Path
    event: Event
    is_replaced: bool
    was_known: bool


@dataclass(frozen=True, slots=True)
class Told:
    """What there is to sum up."""

    runs: list[PublishedRun]
    answers: list[tuple[ExampleQuestion, RecallReply]]
    hostile_run: Event
    hostile_recall: RecallReply
