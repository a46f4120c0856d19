"""No credential, and nothing of our own recall, gets past the first step."""

from lorebus.contracts.memory import WriteMemory
from lorebus.contracts.runs import RunFinished

from libs.common.domain.fence import FencedItem, render_block
from services.writer.evidence.cleaning import clean_note, clean_run, clean_text

TOKEN = "ghp_hTu7Q1xSRiQxUhwmPFo9Qjs1pt0uTG4QUanL"
BLOCK = render_block([FencedItem("0199c2d4-5a1e-7c60-9a51-3f6f0b6f2a11", "Pin the base image.", "CI_FAILURE")])


def run_of(**fields: object) -> RunFinished:
    return RunFinished.model_validate({"run_id": "r", "repository": "a/b", "outcome": "CI_FAILED"} | fields)


def test_credentials_are_masked_before_anything_reads_the_run() -> None:
    run = run_of(
        attempts=[
            {"kind": "ci", "log_tail": f"export GITHUB_TOKEN={TOKEN}\nError: push failed"},
            {"kind": "sign_off", "text": f"rotate {TOKEN}"},
        ],
        ticket={"title": f"use {TOKEN}"},
        change={"files": [{"path": "a.py"}], "implementation_notes": f"token is {TOKEN}"},
    )
    assert TOKEN not in clean_run(run).model_dump_json()


def test_masking_leaves_what_is_no_secret_as_it_was() -> None:
    run = run_of(
        pull_requests=[{"number": 3, "head_sha": "0123456789abcdef0123456789abcdef01234567"}],
        change={"files": [{"path": "tests/test_token.py"}], "tests": {"failing": 1, "passing": 40, "passed": False}},
        attempts=[{"kind": "ci", "seq": 4, "attempt": 2, "activity_id": "9", "log_tail": "Error: no"}],
    )
    assert clean_run(run) == run


def test_what_recall_gave_an_agent_is_no_evidence() -> None:
    run = run_of(
        attempts=[{"kind": "ci", "log_tail": f"$ agent{BLOCK}\nError: no"}],
        change={"files": [], "implementation_notes": f"I was told:{BLOCK}"},
    )
    cleaned = clean_run(run).model_dump_json()
    assert "Pin the base image" not in cleaned
    assert "Error: no" in cleaned


def test_a_note_is_cleaned_in_all_its_texts() -> None:
    note = WriteMemory.model_validate(
        {
            "kind": "note",
            "event_id": "n",
            "repository": "a/b",
            "writer": "shellStep",
            "summary": f"curl -H 'Authorization: Bearer {TOKEN}'",
            "rationale": TOKEN,
            "metadata": {"image": "python:3.12", "api_token": "s3cr3t-value-9", "deep": [{"x": TOKEN}]},
        }
    )
    cleaned = clean_note(note)
    assert TOKEN not in cleaned.model_dump_json()
    assert "s3cr3t-value-9" not in cleaned.model_dump_json()
    assert cleaned.metadata["image"] == "python:3.12"


def test_a_text_is_cleaned_like_a_run() -> None:
    assert clean_text(f"{TOKEN}{BLOCK}") == "[masked:github]\n\n"
