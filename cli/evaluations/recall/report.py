"""What an evaluation of recall found, and the bars it is held to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cli.evaluations.bars import Bar, Direction
from cli.evaluations.recall.data import SetForm
from cli.evaluations.recall.figures import Mean, difference, mean_of

DEPTHS = (1, 5, 10)
EMPTY_PERCENT_MAX = 5.0
DIFFERENCE_MAX = 0.5
"""Percent, between the services and the ranking in process."""


@dataclass(frozen=True, slots=True)
class Goal:
    """At least so many percent: under the static default model, and under a transformer."""

    figure: str
    static: float
    transformer: float

    def of(self, embedder: str) -> float:
        return self.static if embedder.startswith("wordllama/") else self.transformer


GOALS: dict[str, tuple[Goal, ...]] = {
    "cilog_clippy": (Goal("R@5", 87, 90), Goal("R@1", 65, 66)),
    "dups_hadoop": (Goal("R@5", 78, 84), Goal("R@10", 84, 90)),
    "locomo_turns": (Goal("R@5", 58, 64), Goal("R@10", 68, 74)),
    "locomo_observations": (
        Goal("R@5", 69, 73),
        Goal("R@10", 77, 81),
        Goal("silent off topic", 85, 87),
        Goal("evidence in", 72, 77),
    ),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one question fared: shares of its evidence in the first so many, and what an agent is given by default."""

    reached: dict[int, float]
    is_empty: bool
    has_evidence: bool
    is_silent_elsewhere: bool | None = None


@dataclass(frozen=True, slots=True)
class SetReport:
    """`in_process` and the arms alone in the order of `over_bus`, question by question. Without services the latter is
    the former."""

    form: SetForm
    memories: int
    outcomes: Sequence[Outcome]
    in_process: Sequence[Outcome]
    vector: Sequence[Outcome]
    words: Sequence[Outcome]

    @property
    def figures(self) -> dict[str, Mean]:
        found = {f"R@{depth}": mean_of([one.reached[depth] for one in self.outcomes]) for depth in DEPTHS}
        found["empty"] = mean_of([float(one.is_empty) for one in self.outcomes])
        found["evidence in"] = mean_of([float(one.has_evidence) for one in self.outcomes])
        silent = [float(one.is_silent_elsewhere) for one in self.outcomes if one.is_silent_elsewhere is not None]
        return found | ({"silent off topic": mean_of(silent)} if silent else {})

    @property
    def differences(self) -> dict[str, Mean]:
        """R@5 of what is served, less that of others."""
        others = {"the ranking in process": self.in_process, "the vector alone": self.vector, "the words": self.words}
        ours = [one.reached[5] for one in self.outcomes]
        return {name: difference(ours, [one.reached[5] for one in theirs]) for name, theirs in others.items()}


@dataclass(frozen=True, slots=True)
class RecallReport:
    embedder: str
    is_served: bool
    sets: Sequence[SetReport]

    @property
    def bars(self) -> list[Bar]:
        return [bar for one in self.sets for bar in self._bars_of(one)]

    @property
    def holds(self) -> bool:
        return all(bar.holds for bar in self.bars)

    def as_json(self) -> dict[str, object]:
        return {
            "embedder": self.embedder,
            "over_the_bus": self.is_served,
            "holds": self.holds,
            "bars": [bar.as_json() for bar in self.bars],
            "sets": {
                one.form.name: {
                    "memories": one.memories,
                    "questions": len(one.outcomes),
                    "figures": {name: mean.as_json() for name, mean in one.figures.items()},
                    "r5_less": {name: mean.as_json() for name, mean in one.differences.items()},
                }
                for one in self.sets
            },
        }

    def _bars_of(self, one: SetReport) -> Iterable[Bar]:
        figures = one.figures
        for goal in GOALS[one.form.name]:
            if goal.figure in figures:
                yield _bar(one, goal.figure, figures[goal.figure].value, "at least", goal.of(self.embedder))
        yield _bar(one, "empty", figures["empty"].value, "at most", EMPTY_PERCENT_MAX)
        if self.is_served:
            apart = abs(one.differences["the ranking in process"].value)
            yield _bar(one, "R@5 off the ranking in process", apart, "at most", DIFFERENCE_MAX)


def _bar(one: SetReport, figure: str, share: float, direction: Direction, limit: float) -> Bar:
    return Bar(f"{one.form.title}: {figure}", 100 * share, direction, limit, "%")
