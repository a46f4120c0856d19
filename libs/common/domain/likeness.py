"""Whether two texts say the same, or nearly the same of two different things.

What differs in a version, a number, a name or a `not` is near in any model's eyes and still another lesson: such a
pair are variants, of which neither replaces the other (retrieval-quality 4).
"""

import re

from libs.common.domain.lexical import tokenize

OWN_WORDS_MAX = 2
OWN_WORDS_OF_LONG_MAX = 3
LONG_FROM_WORDS = 41

_SPACES = re.compile(r"\s+")
_WORD = re.compile(r"[^\W_]+(?:[_.'/:@+-]+[^\W_]+)*")
_NAME = re.compile(r"[a-z][A-Z]|[_./:@]")
_PLACE = re.compile(r"(?<=\w):\d+(?::\d+)?(?!\.?\w)|\bline \d+\b")
_SAYING_NO = """
cannot can't couldn't doesn't don't hasn't isn't must mustn't neither never no none nor not shouldn't unable unless
wasn't weren't without won't
"""
_NEGATIONS = frozenset(_SAYING_NO.split())


def plain_text(text: str) -> str:
    """The text as two of a kind share it: in one case, with single blanks, without places in a source file."""
    return _SPACES.sub(" ", _PLACE.sub("", text)).strip().lower()


def is_variant(one: str, other: str) -> bool:
    """Whether two texts that are near each other tell of different things."""
    return _facts(one) != _facts(other) or _is_reordered(one, other) or _has_few_own_words(one, other)


def _facts(text: str) -> frozenset[str]:
    """Numbers, versions, names of things and negations."""
    words = [word.rstrip(".") for word in _WORD.findall(_PLACE.sub("", text))]
    return frozenset(word.lower() for word in words if _is_fact(word))


def _is_fact(word: str) -> bool:
    return word.lower() in _NEGATIONS or any(map(str.isdigit, word)) or _NAME.search(word) is not None


def _is_reordered(one: str, other: str) -> bool:
    """The same words in another order may say the opposite; a model of word vectors cannot tell."""
    words, others = _WORD.findall(plain_text(one)), _WORD.findall(plain_text(other))
    return words != others and sorted(words) == sorted(others)


def _has_few_own_words(one: str, other: str) -> bool:
    """Each side has words of its own, but hardly any: `inside a block`, `outside a block`."""
    words, others = set(tokenize(one)), set(tokenize(other))
    is_long = max(len(one.split()), len(other.split())) >= LONG_FROM_WORDS
    most = OWN_WORDS_OF_LONG_MAX if is_long else OWN_WORDS_MAX
    return all(0 < len(own) <= most for own in (words - others, others - words))
