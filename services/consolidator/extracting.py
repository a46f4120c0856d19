"""Merging without a model: the most specific member speaks for all, and what the others add becomes the rationale.

Nothing is invented: every sentence stands in one of the sources.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from libs.common.domain.lexical import Frequencies, tokenize
from services.consolidator.rules import (
    RATIONALE_CHARS_MAX,
    SUMMARY_CHARS_MAX,
    Merge,
    Source,
    Wording,
    common_type,
)

_SENTENCE_GAP = re.compile(r"(?<=[.!?])\s+|\n+")
_NEW_SHARE_MIN = 0.3
"""A sentence adds something when so much of its weight is in words that were not said yet."""


def extract(sources: Sequence[Source], words: Frequencies) -> Merge:
    """`words`: how common each word is in ordinary texts."""
    chosen = most_specific(sources, words)
    others = [source for source in sources if source is not chosen]
    said = {*tokenize(chosen.summary)}
    told = [
        *_sentences([chosen.rationale]),
        *_sentences(text for one in others for text in (one.summary, one.rationale)),
    ]
    rationale = _join(_added(told, said, words), RATIONALE_CHARS_MAX)
    wording = Wording(chosen.summary[:SUMMARY_CHARS_MAX], rationale, common_type(sources))
    return Merge(sources, [wording], merged_by="extract")


def most_specific(sources: Sequence[Source], words: Frequencies) -> Source:
    """The one whose summary weighs most in rare words; of equals the more trusted one, then the newer."""

    def specificity(source: Source) -> tuple[float, int, float, str]:
        weight = _weigh(tokenize(source.summary[:SUMMARY_CHARS_MAX]), words)
        return weight, source.origin_tier, source.evidence_at.timestamp(), str(source.id)

    return max(sources, key=specificity)


def _weigh(terms: Iterable[str], words: Frequencies) -> float:
    return sum(words.idf(term) for term in sorted(set(terms)))


def _sentences(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from filter(None, (sentence.strip() for sentence in _SENTENCE_GAP.split(text)))


def _added(sentences: Iterable[str], said: set[str], words: Frequencies) -> Iterator[str]:
    """Sentences that say something new, each against all before it."""
    for sentence in sentences:
        terms = set(tokenize(sentence))
        if terms and _weigh(terms - said, words) >= _NEW_SHARE_MIN * _weigh(terms, words):
            said |= terms
            yield sentence


def _join(sentences: Iterable[str], chars_max: int) -> str:
    """Whole sentences, as many as fit."""
    kept: list[str] = []
    left = chars_max
    for sentence in sentences:
        if len(sentence) + 1 <= left:
            kept.append(sentence)
            left -= len(sentence) + 1
    return " ".join(kept)
