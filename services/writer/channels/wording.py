"""A channel's memory in words, by rules: cut, extracted from an exchange, or found among people's messages."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lorebus.contracts.channels import ChannelMessage

from libs.common.domain.lexical import Frequencies, tokenize

TEXT_CHARS_MAX = 500
"""Of a summary and of a rationale (spec 9)."""
REPLY_CHARS_MIN = 41
"""A shorter reply has nothing to remember."""
FACTS_MAX = 5
FACT_CHARS_MIN = 30

_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_SENTENCE_GAP = re.compile(r"(?<=[.!?])\s+|\n+")
_COURTESY = re.compile(
    r"^\W*(?:hi|hello|hey|sure|of course|certainly|great question|good question|thanks|thank you|no problem|"
    r"you're welcome|let me know|hope this helps|happy to help|feel free)\b",
    re.IGNORECASE,
)
_TELLS = re.compile(
    r"\b(?:decided|agreed|agreement|from now on|going forward|no longer|instead of|deadline|due|launch(?:es|ed)?|"
    r"owns|owned by|in charge of|responsible for|on[- ]call|moved to|moves to|migrated|renamed|deprecated|replaced|"
    r"always|never|must(?:n't)?|only (?:on|in|after|when)|until|requires?|we (?:use|run|deploy|freeze|ship))\b",
    re.IGNORECASE,
)
"""Decisions, rules, owners and dates: what still counts next week."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The texts of one memory, cut."""

    summary: str
    rationale: str


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that people said, and who."""

    wording: Wording
    authors: tuple[str, ...]


def is_worth_keeping(reply: str) -> bool:
    return len(reply.strip()) >= REPLY_CHARS_MIN


def cut(text: str) -> str:
    whole = text.strip()
    return whole if len(whole) <= TEXT_CHARS_MAX else f"{whole[: TEXT_CHARS_MAX - 1].rstrip()}…"


def word_raw(text: str, reply: str) -> Wording:
    """The exchange as it was: where a model should have summed it up and failed."""
    return Wording(cut(reply), cut(text))


def extract_turn(text: str, reply: str, words: Frequencies) -> Wording:
    """The sentences of the reply that say most, in their order; the question is what they rest on."""
    prose = _CODE.sub("\n", reply)
    sentences = [one for one in _split(prose) if not _COURTESY.match(one)] or [reply.strip()]
    weightiest = sorted(range(len(sentences)), key=lambda place: (-_weigh(sentences[place], words), place))
    kept: set[int] = set()
    left = TEXT_CHARS_MAX
    for place in weightiest:
        if len(sentences[place]) + 1 <= left:
            kept.add(place)
            left -= len(sentences[place]) + 1
    summary = " ".join(sentences[place] for place in sorted(kept)) or cut(sentences[weightiest[0]])
    return Wording(summary, cut(f"Asked: {text.strip()}") if text.strip() else "")


def extract_facts(messages: Sequence[ChannelMessage]) -> list[Fact]:
    """Sentences that decide, rule, name an owner or a date, each its writer's own; questions are none. The newest."""
    told = [
        Fact(Wording(cut(sentence), ""), (message.user_id,) if message.user_id else ())
        for message in messages
        for sentence in _split(_CODE.sub("\n", message.text))
        if _is_telling(sentence)
    ]
    return told[-FACTS_MAX:]


def _is_telling(sentence: str) -> bool:
    return len(sentence) >= FACT_CHARS_MIN and not sentence.endswith("?") and _TELLS.search(sentence) is not None


def _split(text: str) -> Iterator[str]:
    yield from filter(None, (sentence.strip() for sentence in _SENTENCE_GAP.split(text)))


def _weigh(sentence: str, words: Frequencies) -> float:
    return sum(words.idf(term) for term in sorted(set(tokenize(sentence))))
