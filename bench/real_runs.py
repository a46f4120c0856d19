"""Recall quality on real runs, offline: what the pure functions of writer and recall promise before any service runs.

Every run of `$LOREBUS_SHARED/real-runs` becomes a lesson, in the order in which `lorebus publish` sends the files; the
labelled queries are then asked in their own repository, and in others, where the right answer is silence.

The cross-validation chooses both bars of the gate anew on four fifths of the repositories, by a rule that knows
nothing of the last fifth, and reports the figures of the last fifths together.

    python -m bench.real_runs [--json] [--setting 0.7] [--limit 5] [--folds 5] [--rule mutual]

Two runs with one cause should read as one lesson: `alike` is the share of such pairs whose first sentences share
most of their words, and `--pairs 20` prints pairs of as many causes as possible, for a person to judge.

    python -m bench.real_runs --pairs 20
"""

import argparse
import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
import wordllama
from lorebus.contracts.envelope import parse_message
from lorebus.contracts.recall import Agent
from lorebus.contracts.runs import RunFinished
from wordllama import WordLlama

from bench.pairs import choose_pairs, pair_runs, render_pairs
from bench.superseding import Item, add_item
from libs.common.domain.calibration import measure_background
from libs.common.domain.lexical import Frequencies, count_documents, tokenize, weigh_terms
from libs.common.domain.query import prepare_query
from libs.common.domain.relevance import Candidate, Gate, Ranked, gate_of_setting, rank_items, recall_items
from libs.common.domain.setting_keys import SUPERSEDE_RULE, SUPERSEDE_THRESHOLD
from libs.common.domain.supersession import Rule, nearness_of
from services.writer.evidence.collection import build_evidence, skip_reason
from services.writer.rules import fingerprint_evidence
from services.writer.wording.lesson import Lesson, write_lesson

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("LOREBUS_SHARED", ROOT.parent / "shared"))
BACKGROUND = ROOT / "libs" / "common" / "embedding" / "background.txt"
SILENT_MIN = 0.88
Z_GRID = (2.5, 2.75, 3.0, 3.25, 3.5, 4.0)
COVERAGE_GRID = (0.1, 0.15, 0.2, 0.25, 0.3)
AGENTS: tuple[Agent, ...] = ("ci_fixer", "implementer", "review_fixer")
KINDS = ("paraphrase", *AGENTS)

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Question:
    kind: str
    text: str
    repositories: tuple[str, ...]
    right: frozenset[str]

    @property
    def agent(self) -> Agent | None:
        return next((agent for agent in AGENTS if agent == self.kind), None)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with everything ranked for it: in its own repositories, and in each other one."""

    question: Question
    own: tuple[list[Ranked[str]], ...]
    others: dict[str, list[Ranked[str]]]


@dataclass(frozen=True, slots=True)
class Answer:
    """How one question fared: where it belongs, in two other repositories, and in all others."""

    kind: str
    repository: str
    in_items: bool
    first: bool
    silent_two: tuple[bool, ...]
    silent_all: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    n: int
    top_5: float
    top_1: float
    silent_two: float
    silent_all: float


class Bench:
    """The lessons in their scopes, and how questions are asked of them."""

    def __init__(self, runs: Path, rule: Rule = SUPERSEDE_RULE.default) -> None:
        self.rule: Rule = rule
        self.model = WordLlama.load(
            config="l2_supercat", dim=256, cache_dir=Path(wordllama.__file__).parent, disable_download=True
        )
        lines = BACKGROUND.read_text().splitlines()
        self.background = self.embed(lines)
        self.common = count_documents(map(tokenize, lines))
        self.scopes: dict[str, list[Item]] = defaultdict(list)
        self.summaries: dict[str, str] = {}
        for path in sorted(runs.glob("*.json")):
            self.publish(parse_message(RunFinished, path.read_bytes()))
        self.frequencies = {name: self.frequencies_of(items) for name, items in self.scopes.items()}

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.asarray(self.model.embed(list(texts), norm=True), dtype=np.float32)

    def publish(self, run: RunFinished) -> None:
        evidence = build_evidence(run)
        if skip_reason(run, evidence):
            return
        lesson = write_lesson(run, evidence)
        self.summaries[run.run_id] = lesson.summary
        item = self.item_of(run.run_id, lesson, fingerprint_evidence(evidence))
        background = measure_background(item.vector, self.background)
        nearness = nearness_of(self.rule, SUPERSEDE_THRESHOLD.default, background)
        self.scopes[run.repository] = add_item(self.scopes[run.repository], item, nearness)

    def item_of(self, run_id: str, lesson: Lesson, fingerprints: Iterable[int]) -> Item:
        words = tokenize("\n".join((lesson.summary, lesson.rationale, lesson.index_text)))
        vector = self.embed([lesson.summary])[0]
        return Item(run_id, lesson.summary, vector, frozenset(words), frozenset(fingerprints))

    def frequencies_of(self, items: Iterable[Item]) -> Frequencies:
        return count_documents(item.terms for item in items)

    def ask(self, question: Question, repository: str) -> list[Ranked[str]]:
        query = prepare_query(question.text, self.common, repository, question.agent)
        vector = self.embed([query.embed_text])[0]
        terms = frozenset(query.terms)
        candidates = [
            Candidate(
                item.run_id,
                float(item.vector @ vector),
                item.terms & terms,
                len(item.terms),
                same_failure=not item.fingerprints.isdisjoint(query.fingerprints),
            )
            for item in self.scopes[repository]
        ]
        background = measure_background(vector, self.background)
        weights = weigh_terms(query.terms, self.frequencies[repository], self.common)
        return rank_items(candidates, weights, background)

    def ask_everywhere(self, question: Question) -> Asked:
        others = sorted(set(self.scopes) - set(question.repositories))
        return Asked(
            question=question,
            own=tuple(self.ask(question, name) for name in question.repositories),
            others={name: self.ask(question, name) for name in others},
        )


def judge(asked: Asked, gate: Gate | None, limit: int) -> Answer:
    question = asked.question
    found = [item.key for ranked in asked.own for item in recall_items(ranked, gate, limit)]
    silent = {name: not recall_items(ranked, gate, 1) for name, ranked in asked.others.items()}
    return Answer(
        kind=question.kind,
        repository=question.repositories[0],
        in_items=any(key in question.right for key in found),
        first=bool(found) and found[0] in question.right,
        silent_two=tuple(silent[name] for name in pick_two(question.text, sorted(silent))),
        silent_all=tuple(silent.values()),
    )


def pick_two(text: str, names: Sequence[str]) -> list[str]:
    """Two of the names, the same for the same text on every machine."""
    return sorted(names, key=lambda name: hashlib.sha256(f"{text}\n{name}".encode()).digest())[:2]


def read_questions(labels: dict[str, Any]) -> list[Question]:
    questions: list[Question] = []
    for cause in labels["root_causes"].values():
        asked = [("paraphrase", text) for text in cause["queries"]]
        asked += [(entry["agent"], entry["query"]) for entry in cause.get("caller_queries", [])]
        where, right = tuple(cause["repositories"]), frozenset(cause["runs"])
        questions += [Question(kind, text, where, right) for kind, text in asked]
    return questions


def summarise(answers: Sequence[Answer]) -> dict[str, Figures]:
    by_kind = {kind: [answer for answer in answers if answer.kind == kind] for kind in KINDS}
    return {kind: _figures(some) for kind, some in by_kind.items() if some}


def _figures(answers: Sequence[Answer]) -> Figures:
    return Figures(
        n=len(answers),
        top_5=fmean(answer.in_items for answer in answers),
        top_1=fmean(answer.first for answer in answers),
        silent_two=fmean(silent for answer in answers for silent in answer.silent_two),
        silent_all=fmean(silent for answer in answers for silent in answer.silent_all),
    )


def fold_of(repository: str, folds: int) -> int:
    return int(hashlib.sha256(repository.encode()).hexdigest(), 16) % folds


def choose_gate(asked: Sequence[Asked], limit: int) -> Gate:
    """The gate that finds most, of those that keep silent often enough everywhere else."""
    grid = [Gate(z, coverage) for z in Z_GRID for coverage in COVERAGE_GRID]
    scored = [(gate, summarise([judge(one, gate, limit) for one in asked])) for gate in grid]
    quiet = [pair for pair in scored if all(row.silent_all >= SILENT_MIN for row in pair[1].values())] or scored
    return max(quiet, key=lambda pair: fmean(row.top_5 for row in pair[1].values()))[0]


def cross_validate(asked: Sequence[Asked], folds: int, limit: int) -> tuple[list[Gate], dict[str, Figures]]:
    gates: list[Gate] = []
    answers: list[Answer] = []
    for fold in range(folds):
        seen = [one for one in asked if fold_of(one.question.repositories[0], folds) != fold]
        unseen = [one for one in asked if fold_of(one.question.repositories[0], folds) == fold]
        gates.append(choose_gate(seen, limit))
        answers += [judge(one, gates[-1], limit) for one in unseen]
    return gates, summarise(answers)


def render_table(title: str, figures: dict[str, Figures]) -> str:
    rows = [f"{title:<14}{'n':>5}{'top 5':>8}{'top 1':>8}{'silent 2':>10}{'silent all':>12}"]
    for kind, row in figures.items():
        rows.append(
            f"{kind:<14}{row.n:>5}{row.top_5:>8.3f}{row.top_1:>8.3f}{row.silent_two:>10.3f}{row.silent_all:>12.3f}"
        )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--setting", type=float, default=0.7, help="the similarity setting")
    parser.add_argument("--limit", type=int, default=5)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--rule", choices=("mutual", "cosine"), default=SUPERSEDE_RULE.default)
    parser.add_argument("--pairs", type=int, default=0, help="print so many pairs, and nothing else")
    chosen = parser.parse_args()
    real_runs = SHARED / "real-runs"
    labels = json.loads((real_runs / "labels.json").read_text())
    bench = Bench(real_runs / "runs", chosen.rule)
    pairs = pair_runs(labels, bench.summaries)
    if chosen.pairs:
        print(render_pairs(choose_pairs(pairs, chosen.pairs)))
        return
    asked = [bench.ask_everywhere(one) for one in read_questions(labels)]
    total = summarise([judge(one, gate_of_setting(chosen.setting), chosen.limit) for one in asked])
    gates, held_out = cross_validate(asked, chosen.folds, chosen.limit)
    report = {
        "lessons": len(bench.summaries),
        "active": sum(map(len, bench.scopes.values())),
        "repositories": len(bench.scopes),
        "pairs": len(pairs),
        "alike": fmean(pair.alike for pair in pairs),
        "default": {kind: asdict(row) for kind, row in total.items()},
        "cross_validated": {kind: asdict(row) for kind, row in held_out.items()},
        "gates": [asdict(gate) for gate in gates],
    }
    if chosen.json:
        print(json.dumps(report, indent=2))
        return
    print(f"{report['lessons']} lessons, {report['active']} active, in {report['repositories']} repositories")
    print(f"{report['alike']:.3f} of {report['pairs']} pairs of runs with one cause open alike\n")
    print(render_table("default", total), render_table("held out", held_out), sep="\n\n")
    print("\ngates chosen: " + ", ".join(f"z {gate.z_min:g} or coverage {gate.coverage_min:g}" for gate in gates))


if __name__ == "__main__":
    main()
