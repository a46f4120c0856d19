"""The texts the gate refuses, as data: a label, an expression, and examples that prove it.

Expressions run on RE2, so the time of a scan grows with the text and never with how clever the text is.
The price: no look-around and no back-references; the compiler says so in words a pattern author understands.

A file may name word classes once, as `[words]`, and its expressions use them as `{name}`: an idea is then written as
what stands near what, and a word that is added to a class counts in every pattern of it. What is stored and scanned is
the whole expression, so a set means the same without its file.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Literal, Protocol, cast

import re2  # pyright: ignore[reportMissingTypeStubs]

SOURCE_CHARS_MAX = 2_000
FLAGS_ALLOWED = "imsu"
# Repeats are unrolled by RE2: a large program means slow scans and a thrashing automaton cache.
PROGRAM_INSTRUCTIONS_MAX = 4_000
MEMORY_BYTES_MAX = 2 << 20
"""Of each pattern, for the automaton that grows as texts ask for it."""
COMPILED_MAX = 1024
VERSION_HEX_DIGITS = 16
EXAMPLES_MAX = 50
"""Of each kind; they are all held against the pattern before each start."""
EXAMPLE_CHARS_MAX = 4_000
# Labels go into facts, logs and refusals, so they must not be able to carry a text.
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}\Z")

# A control character, a code point, several blanks, a flag within the source, or a letter beyond ASCII.
_LAYOUT = re.compile(r"\\[nrtvfxpP0-7]|[\x00-\x1f]|  |(?: |\\s)\{(?!0?,|1,|1\})|\(\?[A-Za-z]*m|(?![\x00-\x7f])[^\W\d_]")

# Not a repeat, which holds digits, not `\{`, which is a literal brace, and not the name of a property as in `\pN`.
_WORD = re.compile(r"(?<!\\)(?<!\\[pP])\{(?P<name>[a-z][a-z_]*)\}")

# google-re2 ships no types; Regex below names the part that is used.
_re2 = cast(Any, re2)

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
    def family(self) -> str:
        """What stands before the first dot of the label."""
        return self.label.partition(".")[0]

    @property
    def reads_lines(self) -> bool:
        """Whether line breaks, wide gaps or foreign letters decide: what the other readings have smoothed away."""
        return "m" in self.flags or _LAYOUT.search(self.source) is not None

    @property
    def key(self) -> str:
        """What a quarantine is remembered by: renaming a slow pattern does not free it."""
        return f"{''.join(sorted(self.flags))}/{self.source}"


@lru_cache(COMPILED_MAX)
def compile_pattern(pattern: Pattern) -> Regex:
    """Once: a set is tried, scanned with, and made anew at each change, and few of its patterns change."""
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
    if not _LABEL.match(pattern.label):
        raise PatternRejected("a label is 1-80 letters, digits, '.', '-' or '_'")
    if not pattern.source:
        raise PatternRejected(f"{pattern.label}: empty source would match every text")
    if len(pattern.source) > SOURCE_CHARS_MAX:
        raise PatternRejected(f"{pattern.label}: source is longer than {SOURCE_CHARS_MAX} characters")
    unknown = sorted(set(pattern.flags) - set(FLAGS_ALLOWED))
    if unknown:
        raise PatternRejected(f"{pattern.label}: unknown flags {unknown}; allowed are i, m, s and u")


def _compile(pattern: Pattern) -> Regex:
    try:
        regex = _re2.compile(render_source(pattern), _options(MEMORY_BYTES_MAX))
    except _re2.error as error:
        raise PatternRejected(f"{pattern.label}: {_explain(pattern.source, error)}") from error
    return cast(Regex, regex)


def render_source(pattern: Pattern) -> str:
    """The expression with its flags, as both engines take it."""
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


def check_examples(pattern: Pattern) -> list[str]:
    """Problems that keep a pattern from going live, in words; an empty list means it may."""
    try:
        regex = compile_pattern(pattern)
    except PatternRejected as rejected:
        return [str(rejected)]
    return [*_unfit_examples(pattern), *_failed_examples(pattern, regex)]


def _unfit_examples(pattern: Pattern) -> list[str]:
    problems: list[str] = []
    for name, texts in {"must_match": pattern.must_match, "must_not_match": pattern.must_not_match}.items():
        if not texts:
            problems.append(f"{pattern.label}: needs at least one {name} example")
        if len(texts) > EXAMPLES_MAX or any(len(text) > EXAMPLE_CHARS_MAX for text in texts):
            problems.append(
                f"{pattern.label}: takes {EXAMPLES_MAX} {name} examples of {EXAMPLE_CHARS_MAX} characters at most"
            )
    return problems


def _failed_examples(pattern: Pattern, regex: Regex) -> list[str]:
    missed = [text for text in pattern.must_match if regex.search(text.encode()) is None]
    hit = [text for text in pattern.must_not_match if regex.search(text.encode()) is not None]
    return [f"{pattern.label}: does not match {text!r}" for text in missed] + [
        f"{pattern.label}: must not match {text!r}" for text in hit
    ]


def pattern_set_version(patterns: Sequence[Pattern]) -> str:
    """Names what decides a verdict, so examples and order do not count: changing them re-screens nothing."""
    content = sorted((pattern.label, pattern.severity, pattern.key) for pattern in patterns)
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:VERSION_HEX_DIGITS]


@cache
def load_builtin_patterns() -> tuple[Pattern, ...]:
    """All files of `builtin/`, read as one."""
    folder = resources.files(__package__ or "services.gate").joinpath("builtin")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name)
    return parse_patterns("\n".join(file.read_text("utf-8") for file in files))


def parse_patterns(toml_text: str) -> tuple[Pattern, ...]:
    """The `[[pattern]]` tables of a file, with its `[words]` put in their places. Raises PatternRejected."""
    try:
        document = tomllib.loads(toml_text)
    except tomllib.TOMLDecodeError as error:
        raise PatternRejected(f"this is not TOML: {error}") from error
    words = _read_words(document)
    patterns = tuple(_build_pattern(row, words) for row in _rows(document))
    labels = [pattern.label for pattern in patterns]
    repeated = sorted({label for label in labels if labels.count(label) > 1})
    if repeated:
        raise PatternRejected(f"labels must be unique, repeated: {repeated}")
    return patterns


def _rows(document: dict[str, object]) -> list[dict[str, object]]:
    rows = document.get("pattern", [])
    is_list_of_tables = isinstance(rows, list) and all(isinstance(row, dict) for row in cast(list[object], rows))
    if set(document) - {"pattern", "words"} or not is_list_of_tables:
        raise PatternRejected("patterns are written as [[pattern]] tables, with nothing beside them but [words]")
    return cast(list[dict[str, object]], rows)


def _read_words(document: dict[str, object]) -> dict[str, str]:
    """Each class as an expression of its own; it may use the classes above it."""
    table = document.get("words", {})
    if not isinstance(table, dict):
        raise PatternRejected("[words] is a table of names and expressions")
    words: dict[str, str] = {}
    for name, source in cast(dict[str, object], table).items():
        if not isinstance(source, str) or not source or not _WORD.fullmatch(f"{{{name}}}"):
            raise PatternRejected(f"[words] {name}: a name of small letters and '_', and an expression")
        words[name] = f"(?:{_put_words(source, words, f'[words] {name}')})"
    return words


def _put_words(source: str, words: Mapping[str, str], place: str) -> str:
    unknown = sorted({name for name in _WORD.findall(source) if name not in words})
    if unknown:
        raise PatternRejected(f"{place}: unknown words {unknown}; a literal brace is written \\{{")
    return _WORD.sub(lambda word: words[word["name"]], source)


def _build_pattern(row: dict[str, object], words: Mapping[str, str]) -> Pattern:
    unknown = sorted(set(row) - {"label", "source", "flags", "severity", "must_match", "must_not_match"})
    if unknown:
        raise PatternRejected(f"{row.get('label', '?')}: unknown fields {unknown}")
    return Pattern(
        label=_text(row, "label"),
        source=_put_words(_text(row, "source"), words, str(row.get("label", "?"))),
        flags=_text(row, "flags"),
        must_match=_texts(row, "must_match"),
        must_not_match=_texts(row, "must_not_match"),
        severity=_severity(row),
    )


def _severity(row: dict[str, object]) -> Severity:
    severity = row.get("severity", "block")
    if severity not in ("block", "watch"):
        raise PatternRejected(f"{row.get('label', '?')}: severity is block or watch")
    return severity


def _text(row: dict[str, object], name: str) -> str:
    text = row.get(name, "")
    if not isinstance(text, str):
        raise PatternRejected(f"{row.get('label', '?')}: {name} is a text")
    return text


def _texts(row: dict[str, object], name: str) -> tuple[str, ...]:
    texts = row.get(name, [])
    # A single text would be taken letter by letter.
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in cast(list[object], texts)):
        raise PatternRejected(f"{row.get('label', '?')}: {name} is a list of texts")
    return tuple(cast(list[str], texts))
