import json
from typing import Any

import pytest

from libs.common.language_model.port import ANSWER_CHARS_MAX
from services.writer.model.answer import (
    METADATA_BYTES_MAX,
    METADATA_KEYS_MAX,
    Unreadable,
    WordedLesson,
    cut_at_sentence,
    keep_metadata,
    read_answer,
)
from services.writer.wording.lesson import RATIONALE_CHARS_MAX, SUMMARY_CHARS_MAX

FIELDS = {
    "failure_type": "CI_FAILURE",
    "lesson_summary": "pytest cannot import left_pad.",
    "rationale": "The log says so.",
    "metadata": {"tool": "pytest"},
    "confidence": "high",
}
TYPES = "'CI_FAILURE', 'REVIEW_REJECTION', 'SECURITY_VIOLATION' or 'MERGE_CONFLICT'"
LESSON = WordedLesson("pytest cannot import left_pad.", "The log says so.", "CI_FAILURE", 0.9, {"tool": "pytest"})


def answer(**fields: Any) -> str:
    return json.dumps(FIELDS | fields)


def read(text: str) -> WordedLesson:
    lesson = read_answer(text)
    assert isinstance(lesson, WordedLesson), lesson
    return lesson


def faults(text: str) -> str:
    unreadable = read_answer(text)
    assert isinstance(unreadable, Unreadable)
    return unreadable.faults


@pytest.mark.parametrize(
    "text",
    [
        answer(),
        f"```json\n{answer()}\n```",
        f"<think>A {{first}} thought: {{}}</think>\nHere it is:\n\n{answer()}\n\nAnything else?",
        f'{{"evidence": {{"ciFailure": "echoed"}}}} {answer()}',
        answer().replace("lesson_summary", "lessonSummary").replace("failure_type", "failureType"),
        answer(confidence=" High ", failure_type="ci_failure", outcome="MERGED", extra={"a": 1}),
    ],
    ids=["plain", "fence", "thoughts", "echo", "camel case", "case and extras"],
)
def test_an_answer_is_found_and_read(text: str) -> None:
    assert read(text) == LESSON


@pytest.mark.parametrize(("grade", "confidence"), [("high", 0.9), ("medium", 0.6), ("low", 0.3)])
def test_a_grade_becomes_a_confidence(grade: str, confidence: float) -> None:
    assert read(answer(confidence=grade)).confidence == confidence


@pytest.mark.parametrize("value", [None, "null", "None", ""])
def test_no_failure_has_no_type(value: str | None) -> None:
    assert read(answer(failure_type=value)).failure_type is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "it holds no JSON object"),
        ("SECRET", "it holds no JSON object"),
        ('["SECRET"]', "it holds no JSON object"),
        ('{"lesson_summary": "SECRET', "it holds no JSON object"),
        (answer(lesson_summary=["SECRET"]), "`lesson_summary`: string type"),
        (answer(lesson_summary=" "), "`lesson_summary`: is blank"),
        (answer(rationale=None), "`rationale`: string type"),
        (answer(confidence="SECRET"), "`confidence`: Input should be 'high', 'medium' or 'low'"),
        (answer(confidence=0.9), "`confidence`: Input should be 'high', 'medium' or 'low'"),
        (
            answer(failure_type="SECRET"),
            f"`failure_type`: Input should be {TYPES}",
        ),
        ('{"SECRET": 1}', "`lesson_summary`: missing; `rationale`: missing; `confidence`: missing"),
        (answer() + " " * ANSWER_CHARS_MAX, "it is far too long"),
    ],
    ids=lambda value: value[:30],
)
def test_a_fault_names_the_field_and_no_content(text: str, fault: str) -> None:
    assert faults(text) == fault


@pytest.mark.parametrize("text", ['{"a":' * 13_000, "{" * 65_000, '{"a":[1,' * 8_000])
def test_deep_or_endless_objects_are_unreadable(text: str) -> None:
    assert faults(text) == "it holds no JSON object"


def test_long_texts_end_with_a_sentence() -> None:
    lesson = read(answer(lesson_summary="One sentence more. " * 200, rationale="Why not? " * 300))
    assert SUMMARY_CHARS_MAX - 20 < len(lesson.summary) <= SUMMARY_CHARS_MAX
    assert RATIONALE_CHARS_MAX - 20 < len(lesson.rationale) <= RATIONALE_CHARS_MAX
    assert (lesson.summary[-5:], lesson.rationale[-4:]) == ("more.", "not?")


def test_a_text_without_sentences_is_cut_all_the_same() -> None:
    assert cut_at_sentence("See v1.2 in a.py " * 100, 100) == ("See v1.2 in a.py " * 100)[:99] + "…"
    assert cut_at_sentence("Short. " + "x" * 200, 100) == ("Short. " + "x" * 200)[:99] + "…"
    assert cut_at_sentence("x" * 99 + ".", 100) == "x" * 99 + "."


def test_credentials_are_masked_before_the_cut() -> None:
    token = "ghp_" + "a1B2" * 9
    lesson = read(answer(lesson_summary="x" * (SUMMARY_CHARS_MAX - 10) + " " + token, metadata={"key": token}))
    assert "ghp_" not in lesson.summary
    assert token not in str(lesson.metadata)


def test_what_postgres_cannot_hold_is_replaced() -> None:
    lesson = read(answer(lesson_summary="a\x00b\ud800c", metadata={"a\x00": ["b\x00", "c\ud800"]}))
    assert lesson.summary == "a\N{REPLACEMENT CHARACTER}b?c"
    assert lesson.metadata == {"a\N{REPLACEMENT CHARACTER}": ["b\N{REPLACEMENT CHARACTER}", "c?"]}


@pytest.mark.parametrize(
    "name", ["outcome", "OUTCOME", "evidence", "reported_outcome", "failureKind", "consolidated-from", "user_slack_id"]
)
def test_what_code_sets_never_comes_from_the_model(name: str) -> None:
    assert read(answer(metadata={name: "MERGED", "tool": "pytest"})).metadata == {"tool": "pytest"}


@pytest.mark.parametrize("metadata", [None, "text", ["a"], 7], ids=str)
def test_metadata_that_is_no_object_is_dropped(metadata: object) -> None:
    assert read(answer(metadata=metadata)).metadata == {}


def test_metadata_entries_that_are_not_small_and_flat_are_dropped_one_by_one() -> None:
    kept: dict[str, Any] = {
        "text": "a",
        "count": 3,
        "share": 0.5,
        "is_flaky": True,
        "nothing": None,
        "files": ["a.py", "b.py"],
    }
    dropped: dict[str, Any] = {
        "object": {"a": 1},
        "nested": [["a"]],
        "deep": json.loads('{"a":' * 500 + "1" + "}" * 500),
        "long": "x" * 501,
        "many": ["a"] * 21,
        "infinite": float("inf"),
        "undefined": float("nan"),
        "huge": 10**400,
        "k" * 101: "a",
        " ": "a",
    }
    assert keep_metadata(dropped | kept) == kept


def test_metadata_is_bounded_in_keys_and_bytes() -> None:
    assert len(keep_metadata({f"k{number}": number for number in range(99)})) == METADATA_KEYS_MAX
    large = keep_metadata({f"k{number}": "é" * 400 for number in range(20)})
    assert 3_000 < len(json.dumps(large, ensure_ascii=False).encode()) <= METADATA_BYTES_MAX
