"""Pairs of runs with one labelled cause: their lessons should read as one and the same."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from libs.common.domain.lexical import tokenize

ALIKE_MIN = 0.6
"""Of the words of both first sentences together, so many are in both."""
SEED = 20


@dataclass(frozen=True, slots=True)
class Pair:
    """The first sentences of two runs with one labelled cause."""

    cause: str
    first: str
    second: str

    @property
    def alike(self) -> bool:
        """By what follows the outcome, which all runs of a cause share."""
        first, second = (set(tokenize(opening.partition(": ")[2])) for opening in (self.first, self.second))
        return len(first & second) >= ALIKE_MIN * len(first | second)


def pair_runs(labels: dict[str, Any], summaries: dict[str, str]) -> list[Pair]:
    openings = {run: summary.partition("\n")[0] for run, summary in summaries.items()}
    pairs: list[Pair] = []
    for name, cause in labels["root_causes"].items():
        runs: list[str] = [run for run in cause["runs"] if cause["duplicate_group"] and run in openings]
        pairs += [Pair(name, openings[first], openings[second]) for first, second in combinations(runs, 2)]
    return pairs


def choose_pairs(pairs: Sequence[Pair], count: int) -> list[Pair]:
    """As many causes as possible, one pair each before the second of any."""
    mixed = random.Random(SEED).sample(pairs, len(pairs))
    seen = Counter[str]()
    ranked: list[tuple[int, Pair]] = []
    for pair in mixed:
        ranked.append((seen[pair.cause], pair))
        seen[pair.cause] += 1
    return [pair for _, pair in sorted(ranked, key=lambda one: one[0])[:count]]


def render_pairs(pairs: Sequence[Pair]) -> str:
    return "\n\n".join(f"{pair.cause} {'=' if pair.alike else '≠'}\n  {pair.first}\n  {pair.second}" for pair in pairs)
