"""The sample runs and questions that come with the source: what `lorebus demo` shows."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from lorebus import LorebusError
from lorebus.contracts.recall import Agent

SOURCE_RUNS = Path(__file__).resolve().parent.parent / "examples" / "runs"
QUESTIONS = "questions.json"


class ExamplesMissing(LorebusError):
    """There are no sample runs where they should be."""


@dataclass(frozen=True, slots=True)
class ExampleQuestion:
    """A question as an agent asks it. `expects` names the run files whose lesson fits: none, where nothing does."""

    agent: Agent
    repository: str
    query: str
    expects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Examples:
    runs: list[Path]
    questions: list[ExampleQuestion]


def find_examples(folder: Path | None = None) -> Examples:
    """Those of this folder, else those of the source tree. Raises ExamplesMissing, which says what to do."""
    runs = sorted((folder or SOURCE_RUNS).glob("*.json"))
    if not runs and folder:
        raise ExamplesMissing(f"there are no runs in {folder}: --runs names a folder of `run.finished` files, *.json")
    if not runs:
        raise ExamplesMissing(
            f"the sample runs are not there ({SOURCE_RUNS}): an installed wheel does not carry them. "
            "Take the folder examples/runs from the source and name it with --runs DIR"
        )
    return Examples(runs, _read_questions(runs[0].parent.parent / QUESTIONS))


def _read_questions(path: Path) -> list[ExampleQuestion]:
    """None where the file is missing: runs of one's own come without questions."""
    try:
        given: list[dict[str, Any]] = json.loads(path.read_bytes())
        return [_build_question(fields) for fields in given]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExamplesMissing(f"{path} cannot be read as questions ({error!r})") from error


def _build_question(fields: dict[str, Any]) -> ExampleQuestion:
    expects = cast("list[str]", fields["expects"])
    return ExampleQuestion(fields["agent"], fields["repository"], fields["query"], tuple(expects))
