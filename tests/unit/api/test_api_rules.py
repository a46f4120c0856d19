"""What the HTTP service decides: works, owners, projects, where it may listen."""

import pytest

from services.api.rules import (
    Access,
    Caller,
    is_loopback,
    judge_work,
    may_change,
    missing_credentials,
    project_of_session,
    stamp,
)

WORK = "6f1d3c52-6a0e-4d53-9c1c-7f6a3f0f4b1e"


def caller(role: str | None = None, *roles: str) -> Caller:
    works = {WORK: role} if role else {}
    return Caller(key="user ann", tenant="default", user_id="ann", roles=frozenset(roles), works=works)


@pytest.mark.parametrize(
    ("asks", "to_edit", "is_known", "access"),
    [
        (caller("viewer"), False, False, "granted"),
        (caller("viewer"), True, True, "foreign"),
        (caller("editor"), True, False, "granted"),
        (caller("owner"), True, True, "granted"),
        (caller("none"), False, False, "foreign"),
        (caller(), False, True, "foreign"),
        (caller(), False, False, "unknown"),
        (caller(None, "admin"), True, True, "granted"),
        (caller(None, "admin"), True, False, "unknown"),
    ],
)
def test_a_role_in_a_work_decides(asks: Caller, to_edit: bool, is_known: bool, access: Access) -> None:
    assert judge_work(asks, WORK, to_edit=to_edit, is_known=is_known) == access


def test_the_owner_is_the_caller_whatever_was_said() -> None:
    assert stamp({"ownerUserId": "bob", "a": 1}, caller()) == {"ownerUserId": "ann", "a": 1}


@pytest.mark.parametrize(
    ("metadata", "asks", "may"),
    [
        ({"ownerUserId": "ann"}, caller(), True),
        ({"ownerUserId": "bob"}, caller(), False),
        ({"ownerUserId": "bob"}, caller(None, "admin"), True),
        ({"ownerUserId": ["ann"]}, caller(), False),
        ({}, caller(), True),
    ],
)
def test_only_the_owner_changes_what_has_one(metadata: dict[str, object], asks: Caller, may: bool) -> None:
    assert may_change(asks, metadata) is may


@pytest.mark.parametrize(
    ("project", "metadata", "stands_in"),
    [
        (None, {}, "ever-works"),
        ("", {}, "ever-works"),
        ("ever-works", {"projectId": "site"}, "site"),
        (None, {"projectId": "site"}, "site"),
        ("mine", {"projectId": "site"}, "mine"),
        ("ever-works", {"projectId": 5}, "ever-works"),
        ("ever-works", {"projectId": "p" * 129}, "ever-works"),
    ],
)
def test_a_session_stands_in_the_project_that_its_host_meant(
    project: str | None, metadata: dict[str, object], stands_in: str
) -> None:
    assert project_of_session(project, metadata, "ever-works") == stands_in


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "localhost"])
def test_a_loopback_needs_no_credentials(host: str) -> None:
    assert is_loopback(host)
    assert missing_credentials(host, has_secret=False, has_token_key=False) == []


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "memory.example", ""])
def test_another_address_needs_those_of_both_surfaces(host: str) -> None:
    assert len(missing_credentials(host, has_secret=False, has_token_key=False)) == 2
    assert missing_credentials(host, has_secret=True, has_token_key=True) == []
