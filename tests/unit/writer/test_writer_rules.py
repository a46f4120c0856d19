"""What the writer decides."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from lorebus.contracts.memory import WriteMemory
from lorebus.contracts.runs import RunFinished

from services.writer.evidence.collection import Evidence, build_evidence
from services.writer.model.answer import WordedLesson
from services.writer.rules import (
    Draft,
    Trust,
    draft_lesson,
    draft_model_lesson,
    draft_note,
    evidence_time,
    mark_fallback,
    origin_tier,
    source_of_note,
    source_of_run,
    weigh_trust,
)
from services.writer.wording.lesson import RATIONALE_CHARS_MAX, SUMMARY_CHARS_MAX, write_lesson

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def run_of(**fields: object) -> RunFinished:
    return RunFinished.model_validate({"run_id": "r", "repository": "a/b", "outcome": "CI_FAILED"} | fields)


def draft_of(run: RunFinished) -> Draft:
    evidence = build_evidence(run)
    return draft_lesson(write_lesson(run, evidence), evidence)


def note_of(**fields: object) -> WriteMemory:
    known = {"kind": "note", "event_id": "n", "repository": "a/b", "writer": "shellStep", "summary": "3 files changed."}
    return WriteMemory.model_validate(known | fields)


def test_a_run_becomes_a_draft_with_the_words_that_find_it() -> None:
    draft = draft_of(run_of(attempts=[{"kind": "ci", "log_tail": "Error: Cannot find module 'left-pad'\nexit 1"}]))
    assert {"left", "pad", "modul"} & set(draft.terms)
    assert draft.texts()["lesson"] == f"{draft.lesson.summary}\n\n{draft.lesson.rationale}"


def test_the_recorded_outcome_and_evidence_beat_the_models() -> None:
    written = draft_of(run_of(attempts=[{"kind": "ci", "log_tail": "Error: no module 'left-pad'\nexit 1"}]))
    told = {"tool": "npm", "outcome": "MERGED", "evidence": {"quote": "all is well"}}
    worded = WordedLesson("npm needs left-pad.", "The log.", "CI_FAILURE", 0.9, told)
    draft = draft_model_lesson(written, worded, "openai/x", Decimal("0.01"))
    assert draft.lesson.metadata == {"tool": "npm"} | written.lesson.metadata
    assert (draft.lesson.summary, draft.lesson.confidence) == ("npm needs left-pad.", 0.9)
    assert set(written.terms) - set(draft.terms) != set(written.terms), "the evidence still finds it"


def test_what_a_model_worded_ranks_below_the_systems_own_word() -> None:
    written = draft_of(run_of(attempts=[{"kind": "ci", "log_tail": "Error: no\nexit 1"}]))
    worded = WordedLesson("It fails.", "The log.", None, 0.3)
    assert (written.origin_tier, draft_model_lesson(written, worded, "openai/x", None).origin_tier) == (2, 1)


def test_a_lesson_of_the_rules_that_stands_in_for_a_model_says_why() -> None:
    written = draft_of(run_of(attempts=[{"kind": "ci", "log_tail": "Error: no\nexit 1"}]))
    marked = mark_fallback(written, "spending_refused", Decimal("0.002"))
    assert marked.lesson.metadata == written.lesson.metadata | {"writer": "extractive", "fallback": "spending_refused"}
    assert (marked.lesson.summary, marked.cost_usd) == (written.lesson.summary, Decimal("0.002"))


def test_the_gate_sees_every_text_that_will_be_stored() -> None:
    metadata = {"branch": "main", "files": ["a.py", {"note": "deep"}], "count": 3}
    draft = draft_note(note_of(rationale="why", metadata=metadata))
    assert draft.texts() == {
        "summary": "3 files changed.",
        "rationale": "why",
        "metadata": "branch\nmain\nfiles\na.py\nnote\ndeep\ncount",
        "lesson": "3 files changed.\n\nwhy",
    }


@pytest.mark.parametrize(("writer", "tier"), [("mergeConflictResolver", 1), ("shellStep", 1), ("a stranger", 0)])
def test_a_note_never_ranks_with_the_systems_own_evidence(writer: str, tier: int) -> None:
    draft = draft_note(note_of(writer=writer))
    assert (draft.origin_tier, draft.lesson.confidence) == (tier, None)


def test_a_note_is_cut_to_what_a_memory_holds() -> None:
    draft = draft_note(note_of(summary="s" * 9_000, rationale="r" * 9_000, metadata={"a": 1, "b": "x" * 99_000}))
    assert (len(draft.lesson.summary), len(draft.lesson.rationale)) == (SUMMARY_CHARS_MAX, RATIONALE_CHARS_MAX)
    assert draft.lesson.metadata == {"a": 1, "members_omitted": 1}


def test_a_note_and_a_run_may_have_the_same_event_id() -> None:
    note, run = note_of(event_id="7"), run_of(event_id="7")
    assert source_of_note(note, "t", NOW).key != source_of_run(run, "t", NOW).key


@pytest.mark.parametrize(
    ("evidence", "tier"),
    [
        (Evidence("CI_FAILED", ci_failure="Error"), 2),
        (Evidence("REVIEW_FAILED", rejection="[security] no"), 2),
        (Evidence("COMPLETED"), 1),
    ],
)
def test_the_tier_comes_from_the_kind_of_evidence(evidence: Evidence, tier: int) -> None:
    assert origin_tier(evidence) == tier


def test_evidence_is_as_old_as_the_run_says() -> None:
    assert evidence_time(NOW - timedelta(days=3), NOW) == NOW - timedelta(days=3)


def test_the_brokers_time_stands_in_for_a_missing_one() -> None:
    assert evidence_time(None, NOW) == NOW


def test_nobody_speaks_for_the_future() -> None:
    assert evidence_time(NOW + timedelta(days=900), NOW) == NOW


@pytest.mark.parametrize(
    ("origin", "tier", "is_held"), [(3, 1, False), (2, 1, False), (1, 1, True), (0, 0, True)], ids=str
)
def test_risky_text_counts_as_an_agents_word_at_most_and_is_held_where_it_is_no_more(
    origin: int, tier: int, is_held: bool
) -> None:
    assert weigh_trust(origin, ["risky.download-and-run"]) == Trust(tier, is_held)


@pytest.mark.parametrize("origin", range(4))
def test_what_nothing_watches_keeps_its_tier(origin: int) -> None:
    assert weigh_trust(origin, []) == Trust(origin, is_held=False)


def test_runs_answer_for_their_repository_and_notes_for_their_writer_in_it() -> None:
    runs = {source_of_run(run_of(run_id=run_id, event_id=run_id), "t", NOW).origin for run_id in ("r1", "r2")}
    notes = {source_of_note(note_of(writer=writer), "t", NOW).origin for writer in ("one", "other")}
    assert (runs, notes) == ({"a/b"}, {"a/b one", "a/b other"})
