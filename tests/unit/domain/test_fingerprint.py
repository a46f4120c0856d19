"""An error is found again by what does not change from run to run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.common.domain.fingerprint import FINGERPRINTS_MAX, fingerprint_failure, fingerprint_lines, sign_line

ERROR = "src/parser.c:88:12: error: implicit declaration of function 'strlcpy'"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ERROR, "/home/ci/build/acme/shop/src/parser.c:91:3: error: implicit declaration of function 'strlcpy'"),
        (ERROR, "2026-01-02T03:04:05Z \x1b[31m" + ERROR + "\x1b[0m"),
        ("FAILED tests/test_dates.py::test_leap - assert 28 == 29", "FAILED test_dates.py::test_leap - assert 3 == 31"),
        ("cannot open lock 0x7f3a2c00 of session pool", "cannot open lock 0x11112222 of session pool"),
        ("Error: no route to db-1.example:5432 via gateway", "Error: no route to db-2.example:5433 via gateway"),
    ],
)
def test_what_changes_from_run_to_run_makes_no_other_failure(one: str, other: str) -> None:
    assert fingerprint_failure(one)
    assert fingerprint_failure(one) == fingerprint_failure(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Error: Cannot find module 'fast-glob'", "Error: Cannot find module 'left-pad'"),
        (ERROR, ERROR.replace("strlcpy", "strlcat")),
        (ERROR, ERROR.replace("parser.c", "lexer.c")),
    ],
)
def test_another_name_is_another_failure(one: str, other: str) -> None:
    assert set(fingerprint_failure(one)).isdisjoint(fingerprint_failure(other))


@pytest.mark.parametrize(
    "line",
    [
        "Process completed with exit code 1.",
        "make: *** [all] Error 2",
        "BUILD FAILED in 12s",
        "1 failed, 40 passed",
        "npm ERR! code ELIFECYCLE",
        "error: aborting due to previous error",
        "tests: 14, assertions: 20, failures: 1",
    ],
)
def test_what_any_failure_says_finds_no_lesson(line: str) -> None:
    assert fingerprint_failure(line) == ()


def test_a_log_is_found_by_its_error_lines_whatever_stands_around_them() -> None:
    noise = [f"Compiling dependency {name}" for name in ("alpha", "beta", "gamma")]
    asked = fingerprint_lines(["Compiling dependency alpha", ERROR])
    assert set(fingerprint_failure("\n".join([*noise, ERROR, "make: *** [all] Error 2"]))) <= set(asked)


def test_of_many_errors_a_few_are_kept() -> None:
    names = ["".join(chr(97 + digit) for digit in divmod(number, 26)) * 3 for number in range(200)]
    assert len(fingerprint_failure("\n".join(f"error: undefined symbol {name} in module" for name in names))) == (
        FINGERPRINTS_MAX
    )


def test_a_text_without_an_error_has_none() -> None:
    assert fingerprint_failure("Add a page that shows all orders.\nAnd one that shows none.") == ()
    assert fingerprint_lines(["", "  ", "***"]) == ()


@given(st.text(max_size=200), st.integers(min_value=0, max_value=10**9))
def test_a_signature_is_stable_and_does_not_depend_on_a_number(text: str, number: int) -> None:
    assert sign_line(f"{text} {number}") == sign_line(f"{text} 7")
    assert sign_line(sign_line(text)) == sign_line(text)


@given(st.lists(st.text("abc1 /", max_size=6), max_size=40))
def test_fingerprints_are_few_distinct_and_fit_the_column(lines: list[str]) -> None:
    found = fingerprint_lines(lines)
    assert len(found) == len(set(found)) <= FINGERPRINTS_MAX
    assert all(-(2**63) <= one < 2**63 for one in found)
