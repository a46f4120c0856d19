"""What holds for the lessons of all real runs."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lorebus.contracts.envelope import parse_message
from lorebus.contracts.runs import RunFinished

from bench.pairs import pair_runs
from services.writer.evidence.collection import build_evidence, skip_reason
from services.writer.wording.lesson import SUMMARY_CHARS_MAX, Lesson, write_lesson

RIGHT_TYPE_MIN = 0.95
ALIKE_MIN = 0.8

VOLATILE = {
    "time": r"\b\d{1,2}:\d\d:\d\d\b",
    "date": r"\b\d{4}[-/]\d\d[-/]\d\d",
    "duration": r"(?<![\w.])\d+(?:\.\d+)? ?(?:ms|[uμ]s|s|secs?|seconds?|m|mins?|minutes?|h|hours?)\b",
    "process": r"(?i)\b(?:pid|process)[ =:#]+\d+|<\d+\.\d+\.\d+>",
    "temporary path": r"/tmp/|/var/folders/|\\Temp\\",
    "home": r"/home/\w|/Users/\w",
    "hash": r"\b(?=[0-9a-f]*\d)(?=[0-9]*[a-f])[0-9a-f]{7,40}\b|\b0x[0-9a-fA-F]{4,}",
    "free port": r"(?:\b\d{1,3}(?:\.\d{1,3}){3}|localhost):\d{5}\b",
    "id of a build": r"\d{9,}",
    "framing": r"\x1b|travis_(?:fold|time)|##\[",
    "rate": r"\d ?[kMG]?i?B/s\b|\d tests/s",
}
PART_OF_THE_CAUSE = {
    "60000ms": "the limit that a test of atom exceeds",
    "2000ms": "the limit that a test of atom exceeds",
    "10000ms": "the limit that a test of atom exceeds",
    "35m": "the limit in the command of purescript's build",
    "360 minutes": "the limit of pytorch's action",
    "1 hour": "how long a reviewer of ComfyUI would cache an answer",
    "0x80000000": "the bound that a reviewer of mpv points at",
}


@pytest.fixture(scope="module")
def labels(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "real-runs" / "labels.json").read_text())


@pytest.fixture(scope="module")
def lessons(shared: Path, labels: dict[str, Any]) -> dict[str, Lesson]:
    written: dict[str, Lesson] = {}
    for run_id, label in labels["runs"].items():
        run = parse_message(RunFinished, (shared / "real-runs" / label["file"]).read_bytes())
        evidence = build_evidence(run)
        if skip_reason(run, evidence):
            assert not label["expect_lesson"]
        else:
            written[run_id] = write_lesson(run, evidence)
    return written


def volatile_tokens(text: str) -> Iterator[tuple[str, str]]:
    for name, pattern in VOLATILE.items():
        yield from ((name, match.group()) for match in re.finditer(pattern, text))


def test_no_summary_holds_what_changes_from_run_to_run(lessons: dict[str, Lesson]):
    found = {token for lesson in lessons.values() for token in volatile_tokens(lesson.summary)}
    assert {token for token in found if token[1] not in PART_OF_THE_CAUSE} == set()
    assert {text for _, text in found} == PART_OF_THE_CAUSE.keys()


def test_the_failure_type_is_the_labelled_one(labels: dict[str, Any], lessons: dict[str, Lesson]):
    causes = {run_id: labels["root_causes"][labels["runs"][run_id]["root_causes"][0]] for run_id in lessons}
    right = [lesson.failure_type == causes[run_id]["failure_type"] for run_id, lesson in lessons.items()]
    assert sum(right) / len(right) >= RIGHT_TYPE_MIN


def test_every_summary_is_within_its_bound(lessons: dict[str, Lesson]):
    assert len(lessons) > 100
    assert all(0 < len(lesson.summary) <= SUMMARY_CHARS_MAX for lesson in lessons.values())
    assert all("\x1b" not in lesson.index_text for lesson in lessons.values())


def test_two_runs_with_one_cause_mostly_open_alike(labels: dict[str, Any], lessons: dict[str, Lesson]):
    pairs = pair_runs(labels, {run_id: lesson.summary for run_id, lesson in lessons.items()})
    assert sum(pair.alike for pair in pairs) / len(pairs) >= ALIKE_MIN
