"""Finished runs as CI systems leave them, all distinct, the same for the same seed."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

AREAS = ("billing", "checkout", "search", "auth", "catalog", "shipping", "reports", "mail", "export", "media", "quota")
NOUNS = ("token", "invoice", "cursor", "parcel", "session", "ledger", "avatar", "schema", "coupon", "digest", "lease")
VERBS = ("parse", "merge", "render", "resolve", "rotate", "flush", "split", "encode", "schedule", "verify", "retry")
MODULES = (
    "orjson",
    "babel",
    "lxml",
    "numpy",
    "redis",
    "boto3",
    "pyarrow",
    "pillow",
    "psycopg",
    "grpc",
    "yaml",
    "attrs",
)
HOSTS = ("pypi.example.net", "registry.example.org", "mirror.example.com", "artifacts.example.net")


@dataclass(frozen=True, slots=True)
class Failure:
    """A CI failure: the lines that state it, and how a later agent asks about one like it."""

    lines: tuple[str, ...]
    question: str


@dataclass(frozen=True, slots=True)
class Names:
    """What tells one failure from another."""

    area: str
    noun: str
    verb: str
    module: str
    host: str
    number: int

    @property
    def test(self) -> str:
        return f"tests/{self.area}/test_{self.noun}_{self.number}.py"

    @property
    def function(self) -> str:
        return f"{self.verb}_{self.noun}_{self.number}"


def missing_module(of: Names) -> Failure:
    module = f"{of.module}_{of.noun}{of.number}"
    return Failure(
        (
            f"ERROR collecting {of.test}",
            f"{of.test}:7: in <module>",
            f"    import {module}",
            f"ModuleNotFoundError: No module named '{module}'",
        ),
        f"{of.test}: ModuleNotFoundError: No module named '{module}' while collecting the {of.area} tests",
    )


def wrong_result(of: Names) -> Failure:
    return Failure(
        (
            f"FAILED {of.test}::test_{of.function} - AssertionError: assert {of.number} == {of.number + 3}",
            f"E   where {of.number} = {of.function}({of.area!r})",
            f"1 failed, {of.number + 180} passed in 12.8s",
        ),
        f"the test of {of.function} in {of.area} fails: AssertionError, it returns a {of.noun} too few",
    )


def compile_error(of: Names) -> Failure:
    source = f"src/{of.area}/{of.noun}_{of.number}.cc"
    return Failure(
        (
            f"{source}:{of.number}:12: error: '{of.function}' was not declared in this scope",
            f"make[2]: *** [CMakeFiles/{of.area}.dir/{of.noun}_{of.number}.o] Error 1",
            "make: *** [all] Error 2",
        ),
        f"{source} does not compile: error: '{of.function}' was not declared in this scope",
    )


def lint(of: Names) -> Failure:
    source = f"{of.area}/{of.noun}_{of.number}.py"
    return Failure(
        (
            f"{source}:{of.number}:5: F821 Undefined name `{of.function}`",
            "Found 1 error.",
            f"ruff check {of.area} failed with exit code 1",
        ),
        f"ruff rejects {source}: F821 Undefined name `{of.function}`",
    )


def download(of: Names) -> Failure:
    archive = f"https://{of.host}/{of.module}/{of.module}-{of.number}.tar.gz"
    return Failure(
        (
            f"curl: (22) The requested URL returned error: 404 Not Found for {archive}",
            f"failed to download {of.module} {of.number} for {of.area}",
        ),
        f"the {of.area} image cannot be built: 404 Not Found for {of.module}-{of.number}.tar.gz at {of.host}",
    )


def timeout(of: Names) -> Failure:
    return Failure(
        (
            f"FAILED {of.test}::test_{of.function} - TimeoutError: {of.noun} not ready after {of.number} s",
            f"waiting for {of.host}:{of.number + 4000} timed out",
        ),
        f"{of.area}: test_{of.function} times out waiting for {of.host} to have its {of.noun} ready",
    )


KINDS: tuple[Callable[[Names], Failure], ...] = (missing_module, wrong_result, compile_error, lint, download, timeout)


def build_failures(count: int, seed: int) -> Iterator[Failure]:
    """Each with a number of its own, so no two are the same."""
    chance = random.Random(seed)  # noqa: S311 - a benchmark repeats itself
    for number in range(count):
        names = Names(*(chance.choice(words) for words in (AREAS, NOUNS, VERBS, MODULES, HOSTS)), number=number)
        yield chance.choice(KINDS)(names)


def build_run(repository: str, number: int, failure: Failure) -> dict[str, Any]:
    """A `run.finished` whose log ends with the failure."""
    steps = [f"Step {step}/9 : RUN ./ci/step-{step}.sh" for step in range(1, 10)]
    noise = [f"Collecting package {line} of 40" for line in range(1, 41)]
    log = "\n".join([*steps, *noise, *failure.lines, "Process completed with exit code 1."])
    return {
        "run_id": f"bench-{repository}-{number}",
        "repository": repository,
        "outcome": "CI_FAILED",
        "attempts": [{"kind": "ci", "activity_id": "9", "attempt": 1, "log_tail": log}],
    }
