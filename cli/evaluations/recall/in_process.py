"""Answers by the ranking of `libs/common/domain`: exact, over all memories of a scope, without database and bus."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from cli.evaluations.recall.answering import GIVEN_MAX, RANKED_MAX, Answer
from cli.evaluations.recall.data import Memory
from libs.common.domain.calibration import Background, measure_background
from libs.common.domain.lexical import Frequencies, tokenize, weigh_terms
from libs.common.domain.query import PreparedQuery, prepare_query
from libs.common.domain.relevance import Candidate, Ranked, gate_of_setting, rank_items, recall_items
from libs.common.domain.setting_keys import LESSON_RETRIEVAL_THRESHOLD
from libs.common.embedding.port import Embedder, Vectors

Arm = Literal["both", "vector", "words"]

_FLAT = Background(mean=0.0, sd=1.0)


@dataclass
class Scope:
    """All memories of a scope, and in how many of them each word stands."""

    ids: list[str] = field(default_factory=list[str])
    terms: list[frozenset[str]] = field(default_factory=list[frozenset[str]])
    vectors: list[Vectors] = field(default_factory=list[Vectors])
    documents: Counter[str] = field(default_factory=Counter[str])

    def add(self, memory: Memory, vector: Vectors) -> None:
        words = frozenset(tokenize(f"{memory.text}\n{memory.beside}"))
        self.ids.append(memory.id)
        self.terms.append(words)
        self.vectors.append(vector)
        self.documents.update(words)


class InProcess:
    """`arm`: the vector alone, the words alone, or both as recall does it."""

    def __init__(self, embedder: Embedder, background: Vectors, words: Frequencies, arm: Arm = "both") -> None:
        self._embedder = embedder
        self._background = background
        self._words = words
        self._arm: Arm = arm
        self._scopes: dict[str, Scope] = {}

    async def store(self, memories: Sequence[Memory]) -> None:
        if not memories:
            return
        vectors = await self._embedder.embed([memory.text for memory in memories])
        for memory, vector in zip(memories, vectors, strict=True):
            self._scopes.setdefault(memory.repository, Scope()).add(memory, vector)

    async def answer(self, text: str, repository: str) -> Answer:
        query = prepare_query(text, self._words, repository)
        [vector] = await self._embedder.embed([query.embed_text])
        known = self._scopes.get(repository, Scope())
        ranked = self._rank(query, vector, known)
        gate = gate_of_setting(LESSON_RETRIEVAL_THRESHOLD.default, len(known.ids))
        given = recall_items(ranked, gate, GIVEN_MAX)
        return Answer([one.key for one in ranked[:RANKED_MAX]], [one.key for one in given])

    def _rank(self, query: PreparedQuery, vector: Vectors, scope: Scope) -> list[Ranked[str]]:
        terms: frozenset[str] = frozenset() if self._arm == "vector" else frozenset(query.terms)
        cosines = np.zeros(len(scope.ids)) if self._arm == "words" else np.array(scope.vectors) @ vector
        background = _FLAT if self._arm == "words" else measure_background(vector, self._background)
        candidates = [
            Candidate(id_, float(cosine), words & terms, len(words))
            for id_, cosine, words in zip(scope.ids, cosines, scope.terms, strict=True)
        ]
        frequencies = Frequencies(len(scope.ids), scope.documents)
        return rank_items(candidates, weigh_terms(query.terms, frequencies, self._words), background)
