"""What a caller's text asks for: the text to embed, the terms and the fingerprints to look up."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from lorebus.contracts.recall import Agent

from libs.common.domain.fingerprint import FINGERPRINTS_MAX, count_telling, fingerprint_lines
from libs.common.domain.lexical import Frequencies, tokenize
from libs.common.domain.log_forms import STRONG
from libs.common.domain.log_lines import LINE_CHARS_MAX, is_log, read_log, select_lines

QUERY_CHARS_MAX = 2_000
TERMS_MAX = 14
PROSE_LINES_MAX = 8
"""Of a text that is no log: how many of its first lines may be an error line that was pasted into it."""
LOG_READERS: frozenset[Agent | None] = frozenset({"ci_fixer", "gate_fixer"})
"""Agents that ask with what a tool said."""

_REVIEW_LABELS = re.compile(r"^\[[^\]/\n]{1,80}/[^\]\n]{1,40}\] \[[^\]\n]{1,80}\] (?:\S{1,300} )?[—–-] ", re.MULTILINE)
"""`[REVIEWER/SEVERITY] [CATEGORY] file:line —`: the same for every rejection of a kind, so it tells none apart."""

_QUOTED = re.compile(r"`[^`]*`")

_LABELS = re.compile(r"^(?:error|warning|(?:= )?(?:help|note)): ", re.MULTILINE)
"""What a compiler puts before its sentences: it says how bad, not what."""


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    embed_text: str
    terms: tuple[str, ...]
    """Distinct, rarest first."""
    fingerprints: tuple[int, ...] = ()


def prepare_query(
    text: str, background: Frequencies, scope_name: str = "", agent: Agent | None = None
) -> PreparedQuery:
    """A log asks with its strong lines alone, any other text with itself, as the kind of agent wants it read.

    The terms are the rarest by the background, of equally rare ones the longer; this needs no look at the scope. The
    words of the scope's own name are left out: they stand in all its items, so they cannot tell one from another.
    """
    asked = _read_as_log(text) if agent in LOG_READERS else _read_as_text(text, agent)
    terms = set(tokenize(asked.text)) - name_terms(scope_name)
    rarest = sorted(terms, key=lambda term: (-background.idf(term), -len(term), term))
    return PreparedQuery(asked.text, tuple(rarest[:TERMS_MAX]), fingerprint_lines(asked.error_lines))


@lru_cache(maxsize=10_000)
def name_terms(scope_name: str) -> frozenset[str]:
    """The terms of a name like `owner/repository`, whole and in parts."""
    return frozenset(tokenize(scope_name))


@dataclass(frozen=True, slots=True)
class _Asked:
    text: str
    error_lines: Sequence[str]
    """Each an error line perhaps."""


def _read_as_log(text: str) -> _Asked:
    """Of the end of a tool's output: a failure is reported last."""
    lines = _find_error_lines(text)
    return _ask_with(lines) if lines else _Asked(text.strip()[-QUERY_CHARS_MAX:], [])


def _read_as_text(text: str, agent: Agent | None) -> _Asked:
    said = _REVIEW_LABELS.sub("", text) if agent == "review_fixer" else text
    if is_log(said) and (lines := _find_error_lines(said)):
        return _ask_with(lines)
    prose = said.strip()[:QUERY_CHARS_MAX]
    # As they stand: cleaning takes as long as all else here, and few people paste a line with its time and its ids.
    return _Asked(prose, [line for line in prose.splitlines()[:PROSE_LINES_MAX] if len(line) <= LINE_CHARS_MAX])


def _find_error_lines(text: str) -> list[str]:
    return [line.text for line in select_lines(read_log(text), QUERY_CHARS_MAX, STRONG)]


def _ask_with(lines: Sequence[str]) -> _Asked:
    return _Asked(_LABELS.sub("", "\n".join(_find_telling(lines))), lines[-FINGERPRINTS_MAX:])


def _find_telling(lines: Sequence[str]) -> Sequence[str]:
    """Those that tell this failure from others, which what any failure ends with does not.

    Of lines that differ in what they quote alone the first: one fault in forty places is still one.
    """
    telling: dict[str, str] = {}
    for line in lines:
        if count_telling(line):
            telling.setdefault(_QUOTED.sub("", line), line)
    return list(telling.values()) or lines
