"""What a caller's text asks for: the text to embed and the terms to look up."""

from dataclasses import dataclass
from functools import lru_cache

from libs.common.domain.lexical import Frequencies, tokenize
from libs.common.domain.log_forms import STRONG
from libs.common.domain.log_lines import is_log, read_log, select_lines

QUERY_CHARS_MAX = 2_000
TERMS_MAX = 8


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    embed_text: str
    terms: tuple[str, ...]
    """Distinct, rarest first."""


def prepare_query(text: str, background: Frequencies, scope_name: str = "") -> PreparedQuery:
    """A log asks with its strong lines alone, any other text with itself.

    The terms are the rarest by the background, of equally rare ones the longer; this needs no look at the scope. The
    words of the scope's own name are left out: they stand in all its items, so they cannot tell one from another.
    """
    asked = (_error_lines(text) or text.strip())[:QUERY_CHARS_MAX]
    terms = set(tokenize(asked)) - name_terms(scope_name)
    rarest = sorted(terms, key=lambda term: (-background.idf(term), -len(term), term))
    return PreparedQuery(asked, tuple(rarest[:TERMS_MAX]))


@lru_cache(maxsize=10_000)
def name_terms(scope_name: str) -> frozenset[str]:
    """The terms of a name like `owner/repository`, whole and in parts."""
    return frozenset(tokenize(scope_name))


def _error_lines(text: str) -> str:
    if not is_log(text):
        return ""
    return "\n".join(line.text for line in select_lines(read_log(text), QUERY_CHARS_MAX, STRONG))
