"""What each kind of agent asks with."""

import pytest
from lorebus.contracts.runs import Verdict
from lorebus.errors import InvalidMessage
from lorebus.queries import (
    QUERY_CHARS_MAX,
    ci_fixer_query,
    gate_fixer_query,
    implementer_query,
    review_fixer_query,
    reviewer_query,
)

LONG = "a" * QUERY_CHARS_MAX
VERDICTS = [
    {"reviewer": "style", "approved": True, "findings": [{"text": "nothing to say"}]},
    {
        "reviewer": "security",
        "findings": [{"severity": "CRITICAL", "file": "a.py", "text": "eval of input", "suggested_fix": "parse it"}],
    },
    {"reviewer": "tests", "findings": [{"text": "no test"}, {}]},
]


def test_an_implementer_asks_with_the_work_request():
    assert implementer_query(" show prices in euro\n") == "show prices in euro"


def test_a_ci_fixer_asks_with_the_end_of_the_log():
    assert ci_fixer_query(f"start{LONG}end\n") == f"{LONG}end"[-QUERY_CHARS_MAX:]


def test_a_review_fixer_asks_with_the_rejection_as_it_was_worded():
    assert review_fixer_query(" [SECURITY/HIGH] eval of input ") == "[SECURITY/HIGH] eval of input"


def test_a_review_fixer_asks_with_what_was_found_by_those_who_did_not_approve():
    said = "a.py — eval of input — Suggested fix: parse it\nno test"
    assert review_fixer_query(VERDICTS) == said
    assert review_fixer_query([Verdict.model_validate(verdict) for verdict in VERDICTS]) == said


def test_what_is_no_verdict_is_the_callers_to_know():
    with pytest.raises(InvalidMessage, match="approved"):
        review_fixer_query([{"approved": "perhaps"}])


def test_a_gate_fixer_asks_with_the_gates_name_and_the_end_of_its_output():
    assert gate_fixer_query("secret-scan", "found\n") == "secret-scan\nfound"
    asked = gate_fixer_query("secret-scan", f"start{LONG}end")
    assert asked.startswith("secret-scan\na")
    assert asked.endswith("aend")
    assert gate_fixer_query(LONG, f"{LONG}end").endswith("aend")


def test_a_reviewer_asks_with_the_notes_and_the_paths_of_which_no_notes_take_the_place():
    assert reviewer_query(" moved it ", ["a.py", "b.py"]) == "moved it\na.py\nb.py"
    assert "\na.py" in reviewer_query(LONG, ["a.py"])[:2_000]


@pytest.mark.parametrize(
    "query",
    [
        implementer_query(LONG + "b"),
        ci_fixer_query(LONG + "b"),
        review_fixer_query(LONG + "b"),
        review_fixer_query([{"findings": [{"text": LONG}] * 2}]),
        gate_fixer_query("gate", LONG),
        gate_fixer_query(LONG, LONG),
        reviewer_query(LONG, [LONG]),
    ],
    ids=["implementer", "ci", "rejection", "verdicts", "gate", "gate with a long name", "reviewer"],
)
def test_a_query_is_bounded(query: str):
    assert len(query) <= QUERY_CHARS_MAX


@pytest.mark.parametrize(
    "query",
    [
        implementer_query(" \n"),
        ci_fixer_query(""),
        review_fixer_query("\t"),
        review_fixer_query([{"approved": True, "findings": [{"text": "fine"}]}]),
        gate_fixer_query(" ", "\n"),
        reviewer_query(" ", []),
    ],
    ids=["implementer", "ci", "rejection", "verdicts", "gate", "reviewer"],
)
def test_nothing_to_ask_with_is_an_empty_query(query: str):
    assert query == ""
