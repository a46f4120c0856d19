"""Which finding stands for the cause, and what is said to follow from it. The excerpts are from real logs."""

import sys

import pytest

from libs.common.domain.log_lines import read_log
from services.writer.wording.extractors.catalogue import CAUSES
from services.writer.wording.extractors.diagnosis import Diagnosis, diagnose
from services.writer.wording.extractors.finding import Form
from services.writer.wording.failure import get_kind

# cmusatyalab/openface: an assertion fails since a program that the test starts cannot import a module.
OPENFACE = """FAIL: tests.openface_demo_tests.test_classification_demo_pretrained
Traceback (most recent call last):
  File "/root/src/openface/tests/openface_demo_tests.py", line 51, in test_classification_demo_pretrained
AssertionError:
  File "/root/src/openface/demos/classifier.py", line 26, in <module>
ImportError: No module named 'cv2'
FAILED (failures=6)"""

# ethereum/go-ethereum
GO = """--- FAIL: TestSimulation (13.01s)
    peer_test.go:235: failed to start the first server. err: listen udp 127.0.0.1:42613: bind: address already in use
The command "go run build/ci.go test -coverage $TEST_PACKAGES" exited with 1."""

# jgm/pandoc
PANDOC = "      basic:       OK (0.20s)\n      tables:      FAIL (0.06s)\n    man\n"


def of(log: str) -> Diagnosis:
    return diagnose(read_log(log))


def test_the_error_behind_a_failed_assertion_is_the_cause_and_the_test_what_it_led_to():
    assert of(OPENFACE).render() == (
        "a module, package or shared library cannot be loaded (import error): ImportError: No module named 'cv2'; "
        "unittest: tests.openface_demo_tests.test_classification_demo_pretrained fails: AssertionError."
    )


def test_a_report_of_the_kind_is_the_cause_and_the_step_what_it_led_to():
    said = of(GO)
    assert said.kind.name == "address in use"
    assert said.cause is not None
    assert said.cause.what == "TestSimulation fails"
    assert said.effect is not None
    assert said.effect.what == "the command `go run build/ci.go test -coverage $TEST_PACKAGES` fails"


def test_a_log_whose_lines_say_no_kind_takes_it_from_the_report():
    assert of(PANDOC).kind.name == "test assertion"


def test_a_cause_is_not_said_twice():
    assert of('The command "$TIMEOUT 35m ci/build.sh" exited with 124.').effect is None


@pytest.mark.parametrize("log", ["", "alpha\nbeta"])
def test_a_log_that_says_nothing_is_a_failed_step(log: str):
    assert of(log).render() == "a step of the build failed (failed step)."


def test_one_line_of_sixteen_thousand_characters_is_read_in_parts():
    for part in ("error: a ", "FAILED a.py::b - ", "x.c:1: error: ", "(" * 9, "● › ", "a.b.c.", "/" * 9):
        assert len(of(part * (16_000 // len(part))).render()) < 1_000


def test_every_report_is_of_a_kind_that_exists():
    modules = [vars(sys.modules[find.__module__]) for find in CAUSES]
    groups = [value for names in modules for value in names.values() if isinstance(value, tuple)]
    kinds = {one.kind for group in groups for one in group if isinstance(one, Form) and one.kind}
    assert {get_kind(kind).name for kind in kinds} == kinds
    assert "compile error" in kinds
