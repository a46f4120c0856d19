"""What one who answers questions promises: the ranking in process and the running services are asked alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cli.evaluations.recall.data import Memory

RANKED_MAX = 10
GIVEN_MAX = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """Ids, best first: the first ten with every bar off, and the five that an agent gets by default."""

    ranked: Sequence[str]
    given: Sequence[str]


class Answerer(Protocol):
    async def store(self, memories: Sequence[Memory]) -> None: ...

    async def answer(self, text: str, repository: str) -> Answer: ...
