"""Words of a text for the lexical arm: lower case, identifiers beside their parts, light stems.

The terms are stored with each item, so the tokenizer is part of the schema: changing it means indexing again.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import log

TEXT_CHARS_MAX = 64_000
TERM_CHARS_MAX = 64

_WORD = re.compile(r"[^\W_]+(?:[_.'-][^\W_]+)*")
_SEPARATOR = re.compile(r"[_.'-]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=\d{2})")
_STOPPED = """
a about above after again all also an and any are as at be because been before being but by can did do does doing
down during each few for from further get gets got had has have having he her here him his how i if in into is it
its just let me more most my no nor not now of off on once only or other our out over own s same she so some such t
than that the their them then there these they this those through to too under until up very was we were what when
where which while who whom why will with you your
"""
_STOP_WORDS = frozenset(_STOPPED.split())
_SUFFIXES = (
    ("ations", "ate"), ("ation", "ate"), ("ingly", ""), ("ments", ""), ("ment", ""), ("ings", ""), ("ing", ""),
    ("edly", ""), ("ies", "y"), ("ied", "y"), ("ers", ""), ("er", ""), ("ed", ""), ("ly", ""), ("es", ""), ("s", ""),
)  # fmt: skip
_STEM_CHARS_MIN = 3

COMMON_SHARE = 0.15
"""Of the items of a scope: what stands in more of them cannot tell them apart."""
COMMON_FROM_SIZE = 25
"""In a smaller scope such a share is a handful, and says nothing about how common a word is."""


def stem(word: str) -> str:
    """One suffix off an English word, so that `fails`, `failed` and `failing` meet. Crude, but stable."""
    if not word.isalpha() or not word.isascii() or word.endswith(("ss", "us", "is")):
        return word
    for suffix, ending in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _STEM_CHARS_MIN:
            return _without_tail(word[: -len(suffix)] + ending)
    return _without_tail(word)


def _without_tail(word: str) -> str:
    """`stopp` meets `stop`, and `resolve` meets `resolv`."""
    if len(word) > _STEM_CHARS_MIN and word[-1] == word[-2] and word[-1] not in "aeiouls":
        return word[:-1]
    return word[:-1] if len(word) > _STEM_CHARS_MIN and word[-1] == "e" else word


def tokenize(text: str) -> list[str]:
    """The terms of a text in order, repeats included."""
    return list(_terms(text[:TEXT_CHARS_MAX]))


def _terms(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text):
        whole = match.group()
        parts = [part for piece in _SEPARATOR.split(whole) for part in _CAMEL.split(piece)]
        if len(parts) > 1 and len(whole) <= TERM_CHARS_MAX:
            yield whole.lower()
        for part in parts:
            word = part.lower()
            if 1 < len(word) <= TERM_CHARS_MAX and word not in _STOP_WORDS and not word.isdigit():
                yield stem(word)


@dataclass(frozen=True, slots=True)
class Frequencies:
    """In how many of `size` documents each term occurs."""

    size: int
    documents: Mapping[str, int]

    def __add__(self, other: "Frequencies") -> "Frequencies":
        terms = self.documents.keys() | other.documents.keys()
        counts = {term: self.documents.get(term, 0) + other.documents.get(term, 0) for term in terms}
        return Frequencies(self.size + other.size, counts)

    def idf(self, term: str) -> float:
        """BM25's inverse document frequency; never negative."""
        count = self.documents.get(term, 0)
        return log(1 + (self.size - count + 0.5) / (count + 0.5))


def count_documents(documents: Iterable[Iterable[str]]) -> Frequencies:
    counts: dict[str, int] = {}
    size = 0
    for terms in documents:
        size += 1
        for term in set(terms):
            counts[term] = counts.get(term, 0) + 1
    return Frequencies(size, counts)


def weigh_terms(terms: Iterable[str], scope: Frequencies, background: Frequencies) -> dict[str, float]:
    """How much each term of a query tells in this scope.

    A term weighs its idf squared, since it counts once for the query and once for the item (as in a tf-idf cosine):
    two common words in common say much less than one rare one. What stands in too many items of a larger scope
    (`COMMON_SHARE`) weighs nothing.
    """
    both = scope + background
    return {term: 0.0 if is_common(term, scope) else both.idf(term) ** 2 for term in terms}


def is_common(term: str, scope: Frequencies) -> bool:
    return scope.size >= COMMON_FROM_SIZE and scope.documents.get(term, 0) > scope.size * COMMON_SHARE


def coverage(weights: Mapping[str, float], found: Iterable[str]) -> float:
    """Which share of the query's weight the found terms carry: 0 none, 1 all."""
    total = sum(weights.values())
    return sum(weights.get(term, 0.0) for term in set(found)) / total if total else 0.0
