"""Small is checked: what a reader can hold in their head at once, and where to look for it.

A limit may be passed for a reason, which then stands in `EXCEPTIONS`; a trick to get below one is worse than
passing it. Tests are not measured.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from statistics import median, quantiles

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("cli", "libs", "services")
SERVICES = sorted(path.parent for path in (ROOT / "services").glob("*/__init__.py"))

FILE_LINES_MAX, FILE_LINES_MEDIAN_MAX = 300, 110
FUNCTION_LINES_MAX, FUNCTION_LINES_MEDIAN_MAX, FUNCTION_LINES_P95_MAX = 45, 8, 30
PARAMETERS_MAX = 5
"""Those that may be given by position, without self and cls: a keyword-only one names itself at every call."""
NESTING_MAX = 3
SERVICE_FILES = {
    "__init__.py", "__main__.py", "app.py", "service.py", "rules.py", "store.py", "settings.py", "README.md",
}  # fmt: skip
NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "helper", "base", "types", "misc"}

EXCEPTIONS = {
    "libs/common/migrations/versions": "a migration lists tables, top to bottom, and is never changed",
    "libs/common/schema.py": "a list of tables, in which one is looked up",
    "libs/common/litellm_client.py": "sets variables for LiteLLM and reads none",
}
"""Files that are not measured."""
DEEP = {
    "cli/outcomes.py wait_outcomes": "a deadline around a loop: try, timeout, while, if",
}
"""Functions that may nest deeper."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def sources() -> dict[str, str]:
    paths = chain.from_iterable((ROOT / folder).rglob("*.py") for folder in FOLDERS)
    names = {name_of(path): path for path in sorted(paths) if not path.is_relative_to(ROOT / ".venv")}
    return {name: path.read_text("utf-8") for name, path in names.items() if not is_excepted(name)}


def is_excepted(name: str) -> bool:
    return any(name.startswith(exception) for exception in EXCEPTIONS)


@cache
def functions() -> dict[str, Function]:
    """By file and line."""
    return {
        f"{name}:{node.lineno} {node.name}": node
        for name, text in sources().items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, Function)
    }


def without_line(name: str) -> str:
    return re.sub(r":\d+", "", name)


def line_count(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def parameter_count(function: Function) -> int:
    given = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    return len([name for name in given if name not in ("self", "cls")])


def is_command(function: Function) -> bool:
    """Each option of a command is a parameter of its function, given by Typer and never by position."""
    return any(ast.unparse(decorator).startswith("app.command") for decorator in function.decorator_list)


def nesting(node: ast.AST, depth: int = 0) -> int:
    """The deepest block. `elif` goes on beside its `if`, and a function inside is measured by itself."""
    inside = [child for child in ast.iter_child_nodes(node) if not isinstance(child, Function)]
    depths = [nesting(child, depth + (isinstance(child, BLOCKS) and not is_elif(node, child))) for child in inside]
    return max(depths, default=depth)


def is_elif(parent: ast.AST, child: ast.AST) -> bool:
    return isinstance(parent, ast.If) and isinstance(child, ast.If) and parent.orelse == [child]


def test_files_are_small() -> None:
    lengths = {name: len(text.splitlines()) for name, text in sources().items()}
    assert {name: length for name, length in lengths.items() if length > FILE_LINES_MAX} == {}
    assert median(lengths.values()) <= FILE_LINES_MEDIAN_MAX


def test_functions_are_small() -> None:
    lengths = {name: line_count(function) for name, function in functions().items()}
    assert {name: length for name, length in lengths.items() if length > FUNCTION_LINES_MAX} == {}
    assert median(lengths.values()) <= FUNCTION_LINES_MEDIAN_MAX
    assert quantiles(lengths.values(), n=20)[-1] <= FUNCTION_LINES_P95_MAX


def test_functions_take_few_parameters() -> None:
    counts = {name: parameter_count(function) for name, function in functions().items() if not is_command(function)}
    assert {name: count for name, count in counts.items() if count > PARAMETERS_MAX} == {}


def test_blocks_are_flat() -> None:
    depths = {name: nesting(function) for name, function in functions().items()}
    assert {
        name: depth for name, depth in depths.items() if depth > NESTING_MAX and without_line(name) not in DEEP
    } == {}


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_every_service_has_the_same_files(service: Path) -> None:
    assert SERVICE_FILES - {path.name for path in service.iterdir()} == set()


def test_modules_are_named_after_what_they_are_about() -> None:
    assert [name for name in sources() if NAMES_THAT_SAY_NOTHING & set(Path(name).with_suffix("").parts)] == []


def test_results_are_not_printed_and_the_environment_is_read_in_settings_alone() -> None:
    elsewhere = {name: text for name, text in sources().items() if Path(name).stem != "settings"}
    reads = {name: sorted({"os.environ", "os.getenv"} & set(mentions(text))) for name, text in elsewhere.items()}
    assert {name: found for name, found in reads.items() if found} == {}
    assert [name for name, text in sources().items() if "print" in set(mentions(text))] == []


def mentions(text: str) -> Iterator[str]:
    """Names, and names with one attribute."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{node.value.id}.{node.attr}"
