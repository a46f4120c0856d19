"""The texts the gate refuses, as data: a label, an expression, and examples that prove it.

Expressions run on RE2, so the time of a scan grows with the text and never with how clever the text is.
The price: no look-around and no back-references; the compiler says so in words a pattern author understands.
"""

import hashlib
import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal, Protocol, cast

import re2  # pyright: ignore[reportMissingTypeStubs]

SOURCE_CHARS_MAX = 2_000
FLAGS_ALLOWED = "imsu"
# Repeats are unrolled by RE2: a large program means slow scans and a thrashing automaton cache.
PROGRAM_INSTRUCTIONS_MAX = 4_000
MEMORY_BYTES_MAX = 8 << 20
ANY_MEMORY_BYTES_MAX = 64 << 20
VERSION_HEX_DIGITS = 16

# google-re2 ships no types; Regex below names the part that is used.
_re2 = cast(Any, re2)

_BUILTIN_FILE = "builtin_patterns.toml"
_LOOK_AROUND = ("(?=", "(?!", "(?<=", "(?<!")


class PatternRejected(ValueError):
    """A pattern that must not go live; the message names the label and the reason, never a scanned text."""


Severity = Literal["block", "watch"]
"""`block` refuses; `watch` refuses nothing and lowers the trust."""


class Regex(Protocol):
    """The part of a compiled RE2 expression that the gate uses."""

    @property
    def programsize(self) -> int: ...

    def search(self, text: bytes) -> object | None: ...


@dataclass(frozen=True, slots=True)
class Pattern:
    label: str
    source: str
    flags: str = ""
    must_match: tuple[str, ...] = ()
    must_not_match: tuple[str, ...] = ()
    severity: Severity = "block"

    @property
    def key(self) -> str:
        """What a quarantine is remembered by: renaming a slow pattern does not free it."""
        return f"{''.join(sorted(self.flags))}/{self.source}"


def compile_pattern(pattern: Pattern) -> Regex:
    _reject_bad_form(pattern)
    regex = _compile(pattern)
    if regex.programsize > PROGRAM_INSTRUCTIONS_MAX:
        raise PatternRejected(
            f"{pattern.label}: compiles to {regex.programsize} instructions, "
            f"more than {PROGRAM_INSTRUCTIONS_MAX}; use smaller repeats"
        )
    return regex


def _reject_bad_form(pattern: Pattern) -> None:
    if not pattern.label:
        raise PatternRejected("a pattern needs a label")
    if not pattern.source:
        raise PatternRejected(f"{pattern.label}: empty source would match every text")
    if len(pattern.source) > SOURCE_CHARS_MAX:
        raise PatternRejected(f"{pattern.label}: source is longer than {SOURCE_CHARS_MAX} characters")
    unknown = sorted(set(pattern.flags) - set(FLAGS_ALLOWED))
    if unknown:
        raise PatternRejected(f"{pattern.label}: unknown flags {unknown}; allowed are i, m, s and u")


def _compile(pattern: Pattern) -> Regex:
    try:
        regex = _re2.compile(_with_flags(pattern), _options(MEMORY_BYTES_MAX))
    except _re2.error as error:
        raise PatternRejected(f"{pattern.label}: {_explain(pattern.source, error)}") from error
    return cast(Regex, regex)


def _with_flags(pattern: Pattern) -> str:
    # RE2 matches Unicode always, so the u of an imported pattern has nothing to switch on.
    inline = "".join(sorted(set(pattern.flags) - {"u"}))
    return f"(?{inline}){pattern.source}" if inline else pattern.source


def _options(memory_bytes_max: int) -> Any:
    options = _re2.Options()
    options.max_mem = memory_bytes_max
    options.log_errors = False
    return options


def _explain(source: str, error: Exception) -> str:
    if any(form in source for form in _LOOK_AROUND):
        return "look-ahead and look-behind are not supported (linear-time engine); match the words themselves"
    reason = error.args[0] if error.args else error
    text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    return f"does not compile: {text}"


def compile_any(patterns: Sequence[Pattern]) -> Regex:
    """One expression that matches where any of these does: a single pass for the many texts that are clean.

    Not re2.Set: on memory exhaustion a Set answers "no match", while one expression goes on slowly and rightly.
    """
    options = _options(ANY_MEMORY_BYTES_MAX)
    options.never_capture = True
    # Without patterns nothing may match: \z after any byte never does.
    source = "|".join(f"(?:{_with_flags(pattern)})" for pattern in patterns) or r"\z."
    try:
        return cast(Regex, _re2.compile(source, options))
    except _re2.error as error:
        raise PatternRejected(f"the patterns do not compile together: {error}") from error


def check_examples(pattern: Pattern) -> list[str]:
    """Problems that keep a pattern from going live, in words; an empty list means it may."""
    try:
        regex = compile_pattern(pattern)
    except PatternRejected as rejected:
        return [str(rejected)]
    return [*_missing_examples(pattern), *_failed_examples(pattern, regex)]


def _missing_examples(pattern: Pattern) -> list[str]:
    groups = {"must_match": pattern.must_match, "must_not_match": pattern.must_not_match}
    return [f"{pattern.label}: needs at least one {name} example" for name, texts in groups.items() if not texts]


def _failed_examples(pattern: Pattern, regex: Regex) -> list[str]:
    missed = [text for text in pattern.must_match if regex.search(text.encode()) is None]
    hit = [text for text in pattern.must_not_match if regex.search(text.encode()) is not None]
    return [f"{pattern.label}: does not match {text!r}" for text in missed] + [
        f"{pattern.label}: must not match {text!r}" for text in hit
    ]


def pattern_set_version(patterns: Sequence[Pattern]) -> str:
    """Names what decides a verdict, so examples and order do not count: changing them re-screens nothing."""
    content = sorted((pattern.label, pattern.key) for pattern in patterns)
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:VERSION_HEX_DIGITS]


def load_builtin_patterns() -> tuple[Pattern, ...]:
    text = resources.files(__package__ or "services.gate").joinpath(_BUILTIN_FILE).read_text("utf-8")
    return parse_patterns(text)


def parse_patterns(toml_text: str) -> tuple[Pattern, ...]:
    document = tomllib.loads(toml_text)
    patterns = tuple(_build_pattern(row) for row in cast(list[dict[str, object]], document.get("pattern", [])))
    labels = [pattern.label for pattern in patterns]
    repeated = sorted({label for label in labels if labels.count(label) > 1})
    if repeated:
        raise PatternRejected(f"labels must be unique, repeated: {repeated}")
    return patterns


def _build_pattern(row: dict[str, object]) -> Pattern:
    unknown = sorted(set(row) - {"label", "source", "flags", "severity", "must_match", "must_not_match"})
    if unknown:
        raise PatternRejected(f"{row.get('label', '?')}: unknown fields {unknown}")
    return Pattern(
        label=str(row.get("label", "")),
        source=str(row.get("source", "")),
        flags=str(row.get("flags", "")),
        must_match=_texts(row, "must_match"),
        must_not_match=_texts(row, "must_not_match"),
        severity=_severity(row),
    )


def _severity(row: dict[str, object]) -> Severity:
    severity = row.get("severity", "block")
    if severity not in ("block", "watch"):
        raise PatternRejected(f"{row.get('label', '?')}: severity is block or watch")
    return severity


def _texts(row: dict[str, object], name: str) -> tuple[str, ...]:
    return tuple(str(text) for text in cast(list[object], row.get(name, [])))
