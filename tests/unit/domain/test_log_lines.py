import pytest

from libs.common.domain.log_forms import STRONG, score_line
from libs.common.domain.log_lines import clean_line, is_log, last_lines, read_log, select_lines


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("\x1b[31;1mThe command failed\x1b[0m", "The command failed"),
        ("2026-03-06T10:59:03.7420934Z error: no such thing", "error: no such thing"),
        ("[2026-07-13T19:28:19Z] FAILED tests/test_a.py", "FAILED tests/test_a.py"),
        ("##[error]Process completed with exit code 1.", "error: Process completed with exit code 1."),
        ("travis_time:end:0a1b:start=1,finish=2\x1b[0K$ make", "$ make"),
        ("/home/ci/build/acme/shop/src/a.c:1: error", "src/a.c:1: error"),
        ("/Users/sam/notes.txt", "~/notes.txt"),
        ("cannot read /tmp/pytest-of-ci/x/data.json", "cannot read data.json"),
        ("object at 0x7f3a2c00 leaked", "object at … leaked"),
        ("--- FAIL: TestSum (0.03s)", "--- FAIL: TestSum"),
        ("FAIL example.com/shop 26.474s", "FAIL example.com/shop"),
        ("BUILD FAILED in 11m 12s", "BUILD FAILED"),
        ("'tests' errored after 11 min", "'tests' errored"),
        ("The action 'Test' has timed out after 360 minutes", "The action 'Test' has timed out after 360 minutes"),
        ("gen.1 | 2019/06/23 13:27:52 cannot parse", "gen.1 | cannot parse"),
        ("see ~/.npm/_logs/2019-07-31T18_42_37_403Z-debug.log", "see ~/.npm/_logs/-debug.log"),
        ("listen udp 127.0.0.1:42613: bind", "listen udp 127.0.0.1:…: bind"),
        ("listen udp 127.0.0.1:8080: bind", "listen udp 127.0.0.1:8080: bind"),
        ("Process 48849 has 19 GiB", "Process … has 19 GiB"),
        (">>>>>>> 597be33c510 (more cases)", ">>>>>>> … (more cases)"),
        ("uploading logs.xpu_90550893925.zip", "uploading logs.xpu_….zip"),
        ("##[end-action id=__self.upload;outcome=failure]", ""),
    ],
)
def test_framing_and_tokens_of_one_run_are_taken_off(raw: str, clean: str):
    assert clean_line(raw) == clean


@pytest.mark.parametrize(
    "line",
    [
        "E   AssertionError: assert 1 == 2",
        "src/main.rs:3:5: error: expected one of",
        "--- FAIL: TestTransfer",
        "bash: ./run.sh: Permission denied",
        "java.lang.NullPointerException: order",
        "ld: library not found for -lssl",
        "request timed out",
    ],
)
def test_a_line_of_a_failure_is_strong(line: str):
    assert score_line(line) >= STRONG


@pytest.mark.parametrize(
    "line",
    [
        "ok      example.com/shop  0.2s",
        "test_errors.py::test_missing_file PASSED",
        "12 passed, 0 failed",
        'The command "make" exited with 0.',
        "+ rm -f missing.txt",
        "   raise ConnectionError(reason)".strip(),
        "Compiling error-chain v0.12",
        "DeprecationWarning: invalid escape sequence",
        "npm ERR! code ELIFECYCLE",
        "npm ERR! This is probably not a problem with npm. There is likely additional logging output above.",
        "8.00 KB / 177.88 KB [=>---] 4.50 % 291.73 KB/s",
        "store build cache",
    ],
)
def test_a_line_of_a_green_step_is_not(line: str):
    assert score_line(line) < STRONG


def test_lines_that_differ_in_numbers_alone_are_read_once():
    assert [line.text for line in read_log("retry 1 of 3\nretry 2 of 3\nretry 3 of 3\nfailed")] == [
        "retry 1 of 3",
        "failed",
    ]


def test_a_line_that_a_bound_cut_off_is_not_read():
    assert [line.text for line in read_log("[9 characters omitted] …\nt failed\nerror: no\nbye")] == [
        "error: no",
        "bye",
    ]


def test_the_strongest_lines_are_kept_in_their_order():
    lines = read_log("step one\nfoo.c:1:2: error: bad\nstep two\n\nall good here\nnothing\nmake: *** [all] Error 1")
    assert [line.text for line in select_lines(lines, 60, STRONG)] == ["foo.c:1:2: error: bad"]
    assert next(line.text for line in select_lines(lines, 500)) == "step one"


def test_a_log_without_a_failure_still_ends_in_something():
    assert [line.text for line in last_lines(read_log("alpha\nbeta\ngamma"), 2)] == ["beta", "gamma"]


def test_a_mebibyte_of_log_is_cheap_and_bounded():
    log = "x" * 500_000 + "\n" + "error: a b c d e f " * 30_000
    lines = read_log(log)
    assert all(len(line.text) <= 301 for line in lines)
    assert is_log(log + "\nmake\nbye")


@pytest.mark.parametrize("text", ["", "one line", "a\nb", "Please add a page.\nIt shows all orders.\nNo more."])
def test_a_request_of_a_person_is_no_log(text: str):
    assert not is_log(text)


def test_error_output_is_a_log():
    assert is_log("$ make\ncc -c a.c\na.c:1:1: error: unknown type name 'foo'\n")
