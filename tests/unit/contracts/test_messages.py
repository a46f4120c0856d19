"""How bytes become messages, and what is said when they do not."""

import json

import pytest
from lorebus.contracts.envelope import build_message, parse_message
from lorebus.contracts.recall import RecallRequest
from lorebus.contracts.runs import RunFinished
from lorebus.contracts.subjects import event_subject, subject_for, tenant_of
from lorebus.errors import InvalidMessage

RUN = {"run_id": "r1", "repository": "acme/shop", "outcome": "CI_FAILED"}


def parse(**fields: object) -> RunFinished:
    return parse_message(RunFinished, json.dumps(RUN | fields).encode())


def test_three_fields_are_enough() -> None:
    run = parse()
    assert (run.run_id, run.repository, run.known_outcome) == ("r1", "acme/shop", "CI_FAILED")


def test_a_missing_event_id_is_made_of_run_and_outcome() -> None:
    assert parse().event_id == "r1:commitToMemory:CI_FAILED"


def test_unknown_fields_are_ignored() -> None:
    assert parse(provenance={"x": 1}) == parse()


def test_one_odd_field_does_not_cost_the_run() -> None:
    run = parse(
        ticket="a string",
        pull_requests=[{"number": "none"}, {"number": 2}],
        change={"files": [{"path": "a"}, {"lines_added": 3}, 7], "tests": "green"},
        attempts=[{"kind": "ci", "log_tail": "x"}, {"kind": "poll"}, None, {"kind": "review", "verdicts": "no"}],
    )
    assert run.ticket is None
    assert [request.number for request in run.pull_requests] == [2]
    assert run.change is not None
    assert [file.path for file in run.change.files or []] == ["a"]
    assert len(run.ci_failures) == 1


def test_what_postgres_cannot_store_is_replaced() -> None:
    run = parse(attempts=[{"kind": "ci", "log_tail": "a\u0000b\ud800c"}])
    assert run.ci_failures[0].log_tail == "a\N{REPLACEMENT CHARACTER}b?c"


@pytest.mark.parametrize("outcome", ["", "EXPLODED", "merged"])
def test_an_unknown_outcome_is_read_as_completed(outcome: str) -> None:
    assert parse(outcome=outcome).known_outcome == "COMPLETED"


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_not_json_says_so(body: bytes) -> None:
    with pytest.raises(InvalidMessage, match="not JSON"):
        parse_message(RunFinished, body)


@pytest.mark.parametrize("body", [b"[]", b"7", b"null", b'"text"'])
def test_what_is_not_an_object_says_so(body: bytes) -> None:
    with pytest.raises(InvalidMessage, match="not an object"):
        parse_message(RunFinished, body)


def test_the_reason_names_the_field_and_never_its_value() -> None:
    with pytest.raises(InvalidMessage) as caught:
        parse(repository="has a s3cret-value")
    assert "repository" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_later_major_version_is_refused() -> None:
    with pytest.raises(InvalidMessage, match="version"):
        parse(version=2)


@pytest.mark.parametrize(
    ("key", "scope"), [("repository", "swe-lessons"), ("channel", "channel-memory"), ("project", "agent-memory")]
)
def test_the_scope_follows_from_the_key(key: str, scope: str) -> None:
    request = RecallRequest.model_validate({"query": "x", key: "k"})
    assert (request.scope_kind, request.scope_key) == (scope, "k")


def test_the_default_tenant_has_the_bare_subject() -> None:
    assert subject_for("recall.request") == "recall.request"
    assert subject_for("recall.request", "acme") == "recall.request.acme"
    assert event_subject("dead", "acme") == "memory.event.dead.acme"


@pytest.mark.parametrize("tenant", ["", "a.b", "a b", "*", ">", "x" * 65, "a\n"])
def test_a_tenant_cannot_be_a_foreign_subject(tenant: str) -> None:
    with pytest.raises(InvalidMessage):
        subject_for("recall.request", tenant)


@pytest.mark.parametrize("tenant", ["default", "acme"])
def test_the_tenant_is_read_back_from_the_subject(tenant: str) -> None:
    assert tenant_of(subject_for("run.finished", tenant), "run.finished") == tenant


def test_a_transcript_with_a_part_that_cannot_be_read_is_dropped_whole() -> None:
    parts = [{"data": "YQ=="}, {"encoding": "brotli", "data": "Yg=="}]
    whole = {"id": "whole", "format": "claude-code-jsonl", "parts": parts[:1]}
    holed = {"id": "holed", "format": "claude-code-jsonl", "parts": parts}
    run = build_message(RunFinished, {**RUN, "transcripts": [holed, whole]})
    assert [transcript.id for transcript in run.transcripts] == ["whole"]
