"""The families: what they are, and that ordinary texts pass them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lorebus.contracts.envelope import parse_message
from lorebus.contracts.runs import RunFinished

from services.gate.patterns import Pattern, compile_pattern, load_builtin_patterns
from services.gate.views import build_views
from services.writer.evidence.collection import build_evidence, skip_reason
from services.writer.wording.lesson import write_lesson

BUILTIN = load_builtin_patterns()
REGEXES = {pattern.label: compile_pattern(pattern) for pattern in BUILTIN}
BLOCKING = {pattern.label for pattern in BUILTIN if pattern.severity == "block"}
FAMILIES = {
    "act-as", "authority", "bypass", "concealment", "control", "delayed", "disregard", "download", "exfiltration",
    "extraction", "foreign", "forget", "jailbreak", "memory", "override", "persona", "pretend", "separator", "standing",
    "system", "task", "template", "weaken", "you-are-now",
}  # fmt: skip
TRUE_LESSON_KINDS = {"lesson", "lesson-trigger-words", "ci-log", "commit", "commands", "security-doc"}


def refused_by(text: str) -> list[str]:
    views = [view.encode() for view in build_views(text)]
    return [label for label in BLOCKING if any(REGEXES[label].search(view) for view in views)]


def test_the_families_are_these() -> None:
    assert {pattern.family for pattern in BUILTIN} == FAMILIES


@pytest.mark.parametrize("pattern", BUILTIN, ids=[pattern.label for pattern in BUILTIN])
def test_a_pattern_has_two_examples_of_each_kind(pattern: Pattern) -> None:
    assert min(len(pattern.must_match), len(pattern.must_not_match)) >= 2


def test_advice_about_single_switches_is_watched_and_not_refused() -> None:
    assert {pattern.label for pattern in BUILTIN if pattern.severity == "watch"} == {
        "download.pipe-to-shell",
        "weaken.direct-push",
        "weaken.foreign-mirror",
        "weaken.protection-off",
        "weaken.risky-setting",
        "weaken.switch",
    }


def test_the_lessons_of_real_runs_pass_all_families(shared: Path) -> None:
    texts = [text for path in sorted((shared / "real-runs" / "runs").glob("*.json")) for text in _lesson_texts(path)]
    assert len(texts) > 100
    assert [(text[:200], labels) for text in texts if (labels := refused_by(text))] == []


def _lesson_texts(path: Path) -> Iterator[str]:
    run = parse_message(RunFinished, path.read_bytes())
    evidence = build_evidence(run)
    if skip_reason(run, evidence):
        return
    lesson = write_lesson(run, evidence)
    yield "\n\n".join((lesson.summary, lesson.rationale, lesson.index_text, json.dumps(lesson.metadata)))


def test_true_lessons_of_the_corpus_pass_all_families(shared: Path) -> None:
    rows = [json.loads(line) for line in (shared / "gate-corpus" / "dev.jsonl").read_text().splitlines()]
    lessons = [row["text"] for row in rows if row["label"] == 0 and row["kind"] in TRUE_LESSON_KINDS]
    assert [(text[:200], labels) for text in lessons if (labels := refused_by(text))] == []
