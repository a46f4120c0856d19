"""What is told and written down of a delete, and by which names events go."""

from datetime import date
from uuid import UUID

import pytest
from lorebus.contracts.memory import DeleteMemory

from libs.common.domain.memory import event_key, event_of
from libs.common.forgetting import Forgotten
from services.consolidator.forgetting.handling import FACT_IDS_MAX, build_audit, build_facts, build_outcome
from services.consolidator.forgetting.targets import find_events, find_graves

DAY = date(2026, 12, 30)


def ids(count: int, start: int = 0) -> list[UUID]:
    return [UUID(int=start + n) for n in range(count)]


def command(**targets: object) -> DeleteMemory:
    return DeleteMemory.model_validate({"event_id": "e1", "actor": "ann", "reason": "asked for", **targets})


def test_a_delete_is_told_in_as_many_parts_as_its_ids_need_each_id_once() -> None:
    forgotten = Forgotten(ids(FACT_IDS_MAX + 1), ids(3, start=10**6))
    facts = build_facts("acme", "e1", forgotten, DAY)
    assert [(fact.part, fact.parts, len(fact.deleted), len(fact.restored)) for fact in facts] == [
        (1, 2, FACT_IDS_MAX, 3),
        (2, 2, 1, 0),
    ]
    assert {fact.tenant for fact in facts} == {"acme"}


def test_a_delete_of_nothing_is_told_once() -> None:
    [fact] = build_facts("default", "e1", Forgotten([], []), DAY)
    assert (fact.deleted, fact.restored, fact.physical_by, fact.parts) == ([], [], DAY, 1)


def test_the_audit_of_a_person_holds_the_person_and_two_counts() -> None:
    row = build_audit("default", command(person="U1"), Forgotten(ids(2), ids(1)))
    assert (row["entity_kind"], row["entity_id"]) == ("person", "U1")
    assert row["after"] == {"deleted_count": 2, "restored_count": 1}


@pytest.mark.parametrize(
    ("targets", "entity"),
    [
        ({"ids": ids(1)}, ("memory", str(UUID(int=0)))),
        ({"ids": ids(2)}, ("memory", "e1")),
        ({"ids": []}, ("memory", "e1")),
        ({"session_id": "s"}, ("session", "s")),
        ({"event_ids": ["run-1"]}, ("event", "run-1")),
    ],
    ids=["one", "several", "none", "session", "event"],
)
def test_the_audit_is_found_by_what_was_named(targets: dict[str, object], entity: tuple[str, str]) -> None:
    row = build_audit("default", command(**targets), Forgotten([], []))
    assert (row["entity_kind"], row["entity_id"]) == entity


def test_the_event_of_a_delete_says_how_many() -> None:
    assert build_outcome(Forgotten(ids(2), ids(1))).reason == "2 deleted, 1 restored"
    assert build_outcome(Forgotten([], [])).status == "skipped"


@pytest.mark.parametrize(
    ("schema", "event_id"), [("run.finished", "a:b"), ("memory.write", "x:y"), ("run.finished", "x")]
)
def test_the_key_of_an_event_leads_back_to_it(schema: str, event_id: str) -> None:
    assert event_of(event_key(schema, event_id)) == (schema, event_id)


def test_an_event_id_alone_may_be_of_a_run_or_of_a_note() -> None:
    assert find_events(command(event_ids=["x"])) == ["x", "memory.write:x"]
    assert find_events(command(ids=[])) == []


def test_persons_and_sessions_are_buried_by_name() -> None:
    assert find_graves(command(person="U1")) == {"person": ["U1"]}
    assert find_graves(command(session_id="s")) == {"session": ["s"]}
    assert find_graves(command(ids=[])) == {}
