"""What kind of failure a log shows, in plain words.

The kind stands in front of a lesson, because whoever asks later asks in plain words ("cannot be loaded"), while a log
says `ModuleNotFoundError`. It is told from what tools print in general; a further tool is one more alternative.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from libs.common.domain.log_lines import LogLine

KIND_SCORE_MIN = 3
"""A weaker line is too often a green step's."""
HITS_MAX = 5


@dataclass(frozen=True, slots=True)
class FailureKind:
    """`name` as a label, `words` as the end of a sentence: "CI kept failing: …"."""

    name: str
    words: str


@dataclass(frozen=True, slots=True)
class _Rule:
    """How lines of a kind look. The weight says how surely such a line is the cause: a time-out or a failed test is
    what many causes lead to, a missing module is a cause."""

    kind: FailureKind
    weight: int
    pattern: re.Pattern[str]


def _rule(weight: int, name: str, words: str, *alternatives: str) -> _Rule:
    return _Rule(FailureKind(name, words), weight, re.compile("|".join(alternatives)))


UNKNOWN = FailureKind("failed step", "a step of the build failed")

_RULES: tuple[_Rule, ...] = (
    _rule(
        9, "out of memory", "the process or device had no memory left",
        r"(?i:out ?of ?memory|cannot allocate memory|heap space|heap limit)", r"\bOOM\b", r"bad_alloc", r"ENOMEM",
    ),
    _rule(9, "disk full", "no space left on the disk", r"(?i:no space left on device|disk quota exceeded)", r"ENOSPC"),
    _rule(
        9, "merge conflict", "changes of two branches touch the same lines",
        r"^CONFLICT \(", r"(?i:automatic merge failed)",
    ),
    _rule(
        8, "stale generated files", "generated files were not rebuilt from their sources and committed",
        r"(?i:\b(?:re-?build|re-?generate)\b.*\bcommit)", r"(?i:\b(?:out[ -]of[ -]date|not up[ -]to[ -]date)\b)",
        r"(?i:generated \w+ (?:changed|differ))",
    ),
    _rule(
        8, "size budget", "a bundle or package is larger than its size limit",
        r"(?i:\b(?:size|budget|bundle)\b.*\bexceed)", r"(?i:exceed\w*.*\b(?:size|budget)\b)", r"(?i:\bsize limit\b)",
    ),
    _rule(
        8, "runtime version", "the installed version of the language or its runtime is not supported",
        r"(?i:unsupported (?:java|class|python|ruby|node|php)\b)", r"(?i:unsupported .*\bversion\b)",
        r"(?i:requires (?:python|node|ruby|java|php) ?[<>=\d])", r"(?i:engine .* is incompatible)",
    ),
    _rule(
        9, "timeout", "something took too long and was stopped at its time limit",
        # The CI service's own word.
        r"action '.+' has timed out after", r"(?i:no output has been received in the last)",
        r"exceeded the maximum time limit", r"exited with 124",
    ),
    _rule(
        8, "network", "a connection or request to another host failed",
        r"(?i:could not resolve host|name resolution|failed to lookup address|name or service not known)",
        r"getaddrinfo|ENOTFOUND|dns error",
    ),
    _rule(
        8, "import error", "a module, package or shared library cannot be loaded",
        r"\bImportError|\bModuleNotFoundError|\bLoadError|ClassNotFoundException", r"(?i:cannot find module)",
        r"(?i:cannot import name|no module named|undefined symbol|cannot open shared object)",
        r"\.so\S* (?:=> )?not found", r"Can't locate \S+ in @INC",
    ),
    _rule(
        8, "dependency resolution", "required package versions are not available or do not fit together",
        r"PackagesNotFoundError|ERESOLVE|ResolutionImpossible|UnsatisfiableError", r"(?i:no matching distribution)",
        r"(?i:could not (?:resolve|find) .*(?:dependenc|version|artifact))",
    ),
    _rule(
        8, "address in use", "a port is taken by another process",
        r"(?i:address already in use)", r"EADDRINUSE",
    ),
    _rule(
        8, "template error", "a template cannot be parsed or executed",
        r"(?i:\btemplate\b.*\b(?:error|undefined|unexpected|parse|wrong))",
    ),
    _rule(
        7, "package download", "a file or package is missing on its server (not found)",
        r"(?i:\b404\b.*\bnot found\b|\bfailure 404\b|manifest unknown)",
        r"(?i:failed to (?:fetch|download)\b|download.* failed)",
    ),
    _rule(
        7, "permission", "access to something is denied",
        r"(?i:permission denied|access ?denied|not authorized|forbidden)", r"EACCES|EPERM",
    ),
    _rule(
        7, "compile error", "the source does not compile or link",
        r"\.(?:c|cc|cpp|cxx|h|hpp|rs|go|java|kt|scala|swift|m|mm|cs|ts|tsx|hs)[:(]\d+.*"
        r"(?i:error|undefined|not found|undeclared)",
        r"error\[E\d+\]|error (?:C|TS|CS|LNK)\d{4}|FAILED: .*\.o(?:bj)?\b",
        r"^\[error\] \S+\.(?:scala|java|kt):\d+:",
        r"(?i:fatal error:|undefined reference|linking with|cannot create executables|\bld: |no matching function)",
    ),
    _rule(
        7, "syntax error", "a source file cannot be parsed",
        r"SyntaxError|IndentationError|Unexpected token|Invalid CSS after", r"(?i:\bsyntax error\b|\bparse error\b)",
    ),
    _rule(
        7, "name error", "an undefined name or a missing attribute is used",
        r"\b(?:NameError|ReferenceError|AttributeError|NoMethodError)\b", r"\bis not defined\b",
    ),
    _rule(
        7, "lint", "a linter or style check rejects the source",
        r"(?i:(?:^|[\s/:>(\[])[\w-]*lint(?:er|ing)?\b)",
        r"(?i:\b(?:flake8|ruff|rubocop|clippy|checkstyle|phpcs|shellcheck|prettier)\b)",
        r"(?i:\(severity: ?\d\))", r"\b[A-Z]{1,6}\d{3,4}:? [A-Z][a-z]",
    ),
    _rule(
        6, "network", "a connection or request to another host failed",
        r"(?i:connection (?:refused|reset|error|timed out)|connect timeout|max retries)", r"ECONNRE|ENOTFOUND",
        r"(?i:(?:could not|does not|failed to) resolve|name resolution|network is unreachable|error sending request)",
        r"(?i:rate limit|TLS handshake)", r"ConnectionError|getaddrinfo",
    ),
    _rule(
        6, "build configuration", "the build cannot be configured, a setting or a tool is missing",
        r"CMake Error|configure: error|Could NOT find", r"(?i:failed (?:to )?build\w* wheel|configuring incomplete)",
    ),
    _rule(
        6, "crash", "a process died",
        r"(?i:segmentation fault|core dumped|bus error|fatal signal|crash report)", r"SIGSEGV|SIGABRT",
        r"panicked at|\bpanic:",
    ),
    _rule(
        6, "environment", "the machine lacks a driver, device or service that the build needs",
        r"(?i:\bdriver\b.*\bfail|no \w+ (?:gpu|device)\b|device unavailable|docker daemon|cannot open display)",
    ),
    _rule(
        5, "missing file", "a file, directory or command does not exist",
        r"(?i:no such file or directory|command not found|file not found|cannot find the (?:file|path))", r"ENOENT",
    ),
    _rule(
        5, "timeout", "something took too long and was stopped at its time limit",
        r"(?i:time[ds]?[ -]?out|deadline exceeded|exited with 124|exceeded the maximum)",
    ),
    _rule(
        4, "exception", "the code raises an exception",
        r"\b(?:Type|Value|Key|Index|Runtime|Argument|NullPointer|IllegalState)(?:Error|Exception)\b",
    ),
    _rule(
        4, "test assertion", "a test fails because a result differs from what it expects",
        r"(?i:\bassert|\bexpected\b|\bshould (?:be|have|equal)\b|\bfail(?:ed|ure)s?:)",
        r"--- FAIL|\bFAILED\b|not ok\b|: FAIL$", r"(?i:\d+ (?:failing|failed|failures?)\b)",
    ),
)  # fmt: skip


def find_kind(lines: Sequence[LogLine]) -> FailureKind:
    """The kind that the lines speak for most: its weight, its strongest line, and a little for how many there are."""
    told = [line for line in lines if line.score >= KIND_SCORE_MIN]
    weights: dict[FailureKind, float] = {}
    for rule in _RULES:
        scores = [line.score for line in told if rule.pattern.search(line.text)]
        if scores:
            weight = rule.weight + max(scores) / 2 + min(len(scores), HITS_MAX) / 4
            weights[rule.kind] = max(weight, weights.get(rule.kind, 0))
    return max(weights, key=lambda kind: weights[kind]) if weights else UNKNOWN


def get_kind(name: str) -> FailureKind:
    return next(rule.kind for rule in _RULES if rule.kind.name == name)


def speaks_of(kind: FailureKind, text: str) -> bool:
    return any(rule.pattern.search(text) for rule in _RULES if rule.kind == kind)


def find_proof(kind: FailureKind, lines: Sequence[LogLine]) -> LogLine | None:
    """The line that shows the kind best; of equals the first, from which the others mostly follow."""
    told = [line for line in lines if line.score >= KIND_SCORE_MIN and speaks_of(kind, line.text)]
    return max(told, key=lambda line: line.score, default=None)
