"""What a pattern set's verdicts on two texts say of a stored row."""

from uuid import UUID

from libs.common.gate_client import Screening
from services.writer.rescreening import judge
from services.writer.stale_rows import StaleRow

ROW = StaleRow(UUID(int=1), "t", "summary", "rationale")
SUMMARY, LESSON = f"{ROW.id}/summary", f"{ROW.id}/lesson"


def screening(*incomplete: str, **matched: list[str]) -> Screening:
    return Screening(
        "p1",
        {SUMMARY if part == "summary" else LESSON: found for part, found in matched.items()},
        frozenset(incomplete),
    )


def test_a_row_is_cleared_when_summary_and_whole_are() -> None:
    judged = judge([ROW], screening())
    assert (judged.pattern_set, judged.cleared, judged.matched) == ("p1", [ROW.id], {})


def test_a_match_in_either_text_is_a_finding_that_names_every_pattern_once() -> None:
    judged = judge([ROW], screening(summary=["b"], lesson=["a", "b"]))
    assert (judged.cleared, judged.matched) == ([], {ROW.id: ["a", "b"]})
    assert judge([ROW], screening(lesson=["a"])).matched == {ROW.id: ["a"]}


def test_a_scan_that_was_not_whole_leaves_the_row_as_it_is() -> None:
    for part in (SUMMARY, LESSON):
        judged = judge([ROW], screening(part))
        assert (judged.cleared, judged.matched) == ([], {})


def test_a_match_counts_even_where_another_scan_was_not_whole() -> None:
    assert judge([ROW], screening(SUMMARY, lesson=["a"])).matched == {ROW.id: ["a"]}
