"""`lorebus eval recall` in process on small sets, and how questions are judged."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cli.commands.eval import app
from cli.evaluations.recall.answering import Answer
from cli.evaluations.recall.data import DataUnreadable, Question, read_sets
from cli.evaluations.recall.evaluation import judge_answer
from cli.evaluations.recall.figures import difference, mean_of

runner = CliRunner(env={"COLUMNS": "200", "LOREBUS_DATABASE_URL": None, "LOREBUS_NATS_URL": None})

FACTS = [
    {"id": "a1", "scope": "a", "text": "Nadia moved to Lisbon in March"},
    {"id": "a2", "scope": "a", "text": "Peter learns the cello"},
    {"id": "a3", "scope": "a", "text": "nadia moved  to Lisbon in march"},
    {"id": "b1", "scope": "b", "text": "The release is cut on Mondays"},
]
QUESTIONS = [
    {"id": "q1", "scope": "a", "text": "When did Nadia move to Lisbon?", "relevant": ["a1"]},
    {"id": "q2", "scope": "a", "text": "Who learns the cello?", "relevant": ["a2"], "type": "single-hop"},
    {"id": "q3", "scope": "a", "text": "What is his name?", "relevant": ["a2"], "type": "adversarial"},
]


def write_set(folder: Path, name: str, items: list[dict[str, Any]], queries: list[dict[str, Any]]) -> Path:
    for kind, rows in (("items", items), ("queries", queries)):
        (folder / f"{name}.{kind}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_set(tmp_path, "locomo_observations", FACTS, QUESTIONS)


def evaluate(*arguments: object) -> Result:
    return runner.invoke(app, ["recall", *map(str, arguments), "--in-process"])


def test_figures_come_with_their_intervals_and_bars(folder: Path) -> None:
    report = json.loads(evaluate(folder, "--json").stdout)
    one = report["sets"]["locomo_observations"]
    assert (one["memories"], one["questions"]) == (4, 2)
    assert one["figures"]["R@1"] == {"value": 1.0, "interval": [1.0, 1.0], "n": 2}
    assert one["figures"]["silent off topic"]["n"] == 2
    assert set(one["r5_less"]) == {"the ranking in process", "the vector alone", "the words"}
    assert {bar["limit"] for bar in report["bars"] if bar["name"].endswith("R@5")} == {69}


def test_a_bar_that_does_not_hold_ends_with_1(tmp_path: Path) -> None:
    wrong = [{"id": "q", "scope": "a", "text": "Who learns the cello?", "relevant": ["a1"]}]
    result = evaluate(write_set(tmp_path, "dups_hadoop", FACTS[:3], [{**wrong[0], "relevant": ["gone"]}]))
    assert (result.exit_code, "does not hold" in result.stdout) == (1, True)


def test_the_report_can_be_saved_as_a_picture(folder: Path, tmp_path: Path) -> None:
    evaluate(folder, "--chart", tmp_path / "recall.svg")
    assert "<svg" in (tmp_path / "recall.svg").read_text()


def test_without_data_the_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataUnreadable, match="holds none of"):
        read_sets(tmp_path)


def test_a_wrong_line_is_named_without_its_text(tmp_path: Path) -> None:
    write_set(tmp_path, "dups_hadoop", [{"id": "secret"}], [])
    with pytest.raises(DataUnreadable, match=r"line 1: wrong: scope, text") as error:
        read_sets(tmp_path)
    assert "secret" not in str(error.value)


def test_a_question_with_a_time_is_asked_before_later_memories_come(tmp_path: Path) -> None:
    items = [{"id": str(day), "scope": "a", "text": f"day {day}", "ts": f"2026-01-0{day}"} for day in (3, 1, 2)]
    queries = [
        {"id": "late", "scope": "a", "text": "when", "relevant": ["1"]},
        {"id": "early", "scope": "a", "text": "when", "relevant": ["1"], "ts": "2026-01-02"},
    ]
    [told] = read_sets(write_set(tmp_path, "dups_hadoop", items, queries))
    steps = [([one.id for one in step.memories], [one.id for one in step.questions]) for step in told.steps()]
    assert steps == [(["1"], ["early"]), (["2", "3"], ["late"])]


def test_a_turn_of_a_dialog_has_the_turn_before_it_beside_it(tmp_path: Path) -> None:
    items = [{"id": id_, "scope": "a", "session": id_[0], "text": id_} for id_ in ("x1", "x2", "y1")]
    [told] = read_sets(
        write_set(tmp_path, "locomo_turns", items, [{"id": "q", "scope": "a", "text": "?", "relevant": ["x1"]}])
    )
    [step] = told.steps()
    assert [(one.id, one.beside) for one in step.memories] == [("x1", ""), ("x2", "x1"), ("y1", "")]


def test_no_two_sets_share_a_repository(tmp_path: Path) -> None:
    for name in ("locomo_turns", "locomo_observations"):
        write_set(tmp_path, name, FACTS, QUESTIONS)
    asked = [
        question.repository for told in read_sets(tmp_path) for step in told.steps() for question in step.questions
    ]
    assert len(set(asked)) == 2


def judged(ranked: list[str], given: list[str], elsewhere: list[str] | None = None) -> tuple[object, ...]:
    question = Question("q", "a/a", None, "?", (frozenset({"1", "one"}), frozenset({"2"})))
    outcome = judge_answer(question, Answer(ranked, given), None if elsewhere is None else Answer([], elsewhere))
    return outcome.reached, outcome.is_empty, outcome.has_evidence, outcome.is_silent_elsewhere


def test_a_part_of_the_evidence_is_covered_by_any_of_its_items() -> None:
    assert judged(["one", "x", "2"], ["x"]) == ({1: 0.5, 5: 1.0, 10: 1.0}, False, False, None)


def test_an_answer_without_items_is_empty_and_elsewhere_silence_is_right() -> None:
    assert judged([], [], []) == ({1: 0.0, 5: 0.0, 10: 0.0}, True, False, True)
    assert judged([], ["1"], ["x"])[1:] == (False, True, False)


def test_an_interval_holds_its_mean_and_narrows_with_more_questions() -> None:
    few, many = mean_of([0.0, 1.0] * 10), mean_of([0.0, 1.0] * 1_000)
    assert few.low < many.low < many.value == 0.5 < many.high < few.high


def test_a_difference_is_taken_question_by_question() -> None:
    assert difference([1.0, 0.0, 1.0], [0.5, -0.5, 0.5]).low == 0.5
