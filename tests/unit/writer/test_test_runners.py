"""What test runners, and compilers that run tests, report, on excerpts of real logs.

Each names the public repository whose log it is from. A report without one is what the tool prints, for
files and packages with invented names.
"""

import json
from pathlib import Path

import pytest

from libs.common.domain.log_lines import read_log
from services.writer.wording.extractors.finding import Extractor
from services.writer.wording.extractors.go import find_go
from services.writer.wording.extractors.javascript import find_jest, find_mocha
from services.writer.wording.extractors.jvm import find_jvm
from services.writer.wording.extractors.python import find_pytest, find_unittest
from services.writer.wording.extractors.rust import find_rust
from services.writer.wording.extractors.suites import find_suites

CASES: list[tuple[str, Extractor, str, str]] = [
    (
        "pytest: nvbn/thefuck",
        find_pytest,
        """_______________ ERROR collecting tests/shells/test_powershell.py _______________
tests/shells/test_powershell.py:33: in TestPowershell
    ([FileNotFoundError, b'PowerShell 6.1.2\\n'], 'PowerShell 6.1.2', 'pwsh')])
E   NameError: name 'FileNotFoundError' is not defined""",
        (
            "pytest: tests/shells/test_powershell.py cannot be collected: "
            "NameError: name 'FileNotFoundError' is not defined"
        ),
    ),
    (
        "pytest summary: vllm-project/vllm",
        find_pytest,
        (
            "[2026-07-13T19:28:19Z] FAILED v1/kv_connector/test_nixl_imports.py::test_imports - ImportError: "
            "/usr/local/lib/python3.12/dist-packages/nixl_ep_cu13/nixl_ep_cpp.so: undefined symbol: _ZN3c104impl3cow"
        ),
        (
            "pytest: v1/kv_connector/test_nixl_imports.py::test_imports fails: ImportError: "
            "nixl_ep_cu13/nixl_ep_cpp.so: undefined symbol: _ZN3c104impl3cow"
        ),
    ),
    (
        "pytest without the heading: scikit-learn/scikit-learn",
        find_pytest,
        """>                   raise TypeError("could not interpret data type")
E                   TypeError: could not interpret data type

/usr/lib/python2.7/dist-packages/scipy/sparse/sputils.py:101: TypeError""",
        "pytest: a test fails (scipy/sparse/sputils.py): TypeError: could not interpret data type",
    ),
    (
        "unittest: cmusatyalab/openface",
        find_unittest,
        """FAIL: tests.openface_batch_represent_tests.test_batch_represent
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/root/src/openface/tests/openface_batch_represent_tests.py", line 50, in test_batch_represent
    assert p.returncode == 0
AssertionError:""",
        "unittest: tests.openface_batch_represent_tests.test_batch_represent fails: AssertionError",
    ),
    (
        "mocha: atom/atom",
        find_mocha,
        """  119 passing (8s)
  1 failing

  1) AtomWindow creating a real window creates a real, properly configured BrowserWindow:
     Error: timeout of 10000ms exceeded. Ensure the done() callback is being called in this test.""",
        (
            "mocha: AtomWindow creating a real window creates a real, properly configured BrowserWindow fails: "
            "Error: timeout of 10000ms exceeded. Ensure the done() callback is being called in this test"
        ),
    ),
    (
        "mocha, a title of several lines: microsoft/TypeScript",
        find_mocha,
        """  5 failing

  1)
         unittests:: Reuse program structure:: General
           fails if change affects tripleslash references:
     AssertionError: expected 1 to equal 2""",
        (
            "mocha: unittests:: Reuse program structure:: General fails if change affects tripleslash references "
            "fails: AssertionError: expected 1 to equal 2"
        ),
    ),
    (
        "jest",
        find_jest,
        """FAIL src/cart.test.js
  ● cart › adds an item

    expect(received).toBe(expected) // Object.is equality

    Expected: 2""",
        "jest: cart › adds an item fails: expect(received).toBe(expected) // Object.is equality",
    ),
    (
        "jest, a suite that cannot be loaded",
        find_jest,
        """  ● Test suite failed to run

    Cannot find module './missing' from 'src/cart.js'

      at Resolver.resolve (src/cart.js:3:1)""",
        "jest: a test suite cannot be loaded (src/cart.js): Cannot find module './missing' from 'src/cart.js'",
    ),
    (
        "vitest",
        find_jest,
        """ FAIL  src/cart.test.ts > cart > adds an item
AssertionError: expected 1 to be 2""",
        "vitest: src/cart.test.ts > cart > adds an item fails: AssertionError: expected 1 to be 2",
    ),
    (
        "go test: ethereum/go-ethereum",
        find_go,
        """--- FAIL: TestSimulation (13.01s)
    peer_test.go:235: failed to start the first server. err: listen udp 127.0.0.1:42613: bind: address already in use
FAIL""",
        (
            "go test: TestSimulation fails (peer_test.go): failed to start the first server. err: "
            "listen udp 127.0.0.1:…: bind: address already in use"
        ),
    ),
    (
        "go build: ethereum/go-ethereum",
        find_go,
        "../vendor/github.com/elastic/gosigar/sigar_darwin.go:12:10: fatal error: 'libproc.h' file not found",
        "go (../vendor/github.com/elastic/gosigar/sigar_darwin.go): 'libproc.h' file not found",
    ),
    (
        "testify: getlantern/lantern",
        find_go,
        """--- FAIL: TestChainedThenFronted (2.62s)
        Error Trace:    proxied_test.go:126
        Error:          Should be true""",
        "go test: TestChainedThenFronted fails (proxied_test.go): Should be true",
    ),
    (
        "rustc",
        find_rust,
        """error[E0425]: cannot find value `undefined_name` in this scope
 --> src/lib.rs:1:21
error: could not compile `shop` (lib) due to 1 previous error""",
        "rustc (src/lib.rs): cannot find value `undefined_name` in this scope",
    ),
    (
        "cargo test",
        find_rust,
        """---- tests::adds stdout ----

thread 'tests::adds' panicked at src/lib.rs:5:17:
assertion `left == right` failed""",
        "cargo test: tests::adds fails: panicked at src/lib.rs",
    ),
    (
        "a panic: redox-os/redox",
        find_rust,
        "thread 'main' panicked at 'called `Result::unwrap()` on an `Err` value: NotFound', libcore/result.rs:945:5",
        "cargo: thread main panics (libcore/result.rs): called `Result::unwrap()` on an `Err` value: NotFound",
    ),
    (
        "javac",
        find_jvm,
        "shop/Cart.java:1: error: cannot find symbol\nclass Cart { int f() { return missing; } }",
        "javac (shop/Cart.java): cannot find symbol",
    ),
    (
        "Gradle: ReactiveX/RxJava",
        find_jvm,
        """io.reactivex.internal.operators.observable.ObservableRefCountTest > publishNoLeak FAILED
    java.lang.AssertionError: 12,973,696 -> 112,950,472""",
        (
            "Gradle: io.reactivex.internal.operators.observable.ObservableRefCountTest > publishNoLeak fails: "
            "java.lang.AssertionError: … -> …"
        ),
    ),
    (
        "sbt: akka/akka",
        find_jvm,
        (
            "\x1b[0m[\x1b[31merror\x1b[0m] /home/travis/build/akka/akka/akka-remote-tests/TestMessage.scala:10:8: "
            "object internalByteString is not a member of package akka.protobufv3"
        ),
        (
            "scalac (akka-remote-tests/TestMessage.scala): "
            "object internalByteString is not a member of package akka.protobufv3"
        ),
    ),
    (
        "JVM: iluwatar/java-design-patterns",
        find_jvm,
        "Caused by: java.lang.RuntimeException: unsupported Java version: 11",
        "JVM: java.lang.RuntimeException: unsupported Java version: 11",
    ),
    (
        "minitest: jekyll/jekyll",
        find_suites,
        """\x1b[33mSkipped:
TestRelatedPosts#test_: should find posts.  [/home/travis/build/jekyll/jekyll/test/test_related_posts.rb:26]:
\x1b[31mFailure:
TestKramdown#test_: should use the highlighter.  [/home/travis/build/jekyll/jekyll/test/test_kramdown.rb:106]
Minitest::Assertion: Expected true to not be truthy.\x1b[0m""",
        (
            "minitest: TestKramdown#test_: should use the highlighter fails (test/test_kramdown.rb): "
            "Minitest::Assertion: Expected true to not be truthy"
        ),
    ),
    (
        "PHPUnit: bcit-ci/CodeIgniter",
        find_suites,
        """1) Form_validation_test::test_rule_valid_date
Failed asserting that false is true.
/home/travis/build/bcit-ci/CodeIgniter/tests/codeigniter/libraries/Form_validation_test.php:318""",
        (
            "PHPUnit: Form_validation_test::test_rule_valid_date fails "
            "(tests/codeigniter/libraries/Form_validation_test.php): Failed asserting that false is true"
        ),
    ),
    (
        "phpt: php/php-src",
        find_suites,
        "FAIL Test lstat() and stat() functions [ext/standard/tests/file/lstat_stat_variation15.phpt]",
        "phpt: Test lstat() and stat() functions fails (ext/standard/tests/file/lstat_stat_variation15.phpt)",
    ),
    (
        "Perl: sjdy521/Mojo-Webqq",
        find_suites,
        "t/https.t ........ Connection error: Connect timeout at t/https.t line 17.",
        "Perl: t/https.t fails: Connection error: Connect timeout at t/https.t",
    ),
    (
        "tasty: jgm/pandoc",
        find_suites,
        "      tables:                                                        FAIL (0.06s)",
        "tasty: tables fails",
    ),
    (
        "Common Test: processone/ejabberd",
        find_suites,
        "suite:send_recv failed on line 593\nReason: timetrap_timeout",
        "Common Test: suite:send_recv fails: timetrap_timeout",
    ),
]


@pytest.mark.parametrize(("find", "log", "said"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_report_of_a_test_runner_becomes_a_finding(find: Extractor, log: str, said: str):
    found = find([line.text for line in read_log(log)])
    assert found is not None
    assert found.render() == said


@pytest.mark.parametrize(
    ("file", "item", "find", "tool", "error"),
    [
        ("dups_hadoop.items", "hadoop/13337399", find_jvm, "Maven", "java.io.UncheckedIOException: "),
        ("dups_hadoop.items", "hadoop/13363996", find_jvm, "javac", "reference to LOG is ambiguous"),
        ("cilog_clippy.queries", "clippy/allow_attributes_without_reason", find_rust, "rustc", "`allow` attribute"),
    ],
    ids=["surefire", "javac under Maven", "clippy"],
)
def test_a_report_in_shared_data_is_read(shared: Path, file: str, item: str, find: Extractor, tool: str, error: str):
    rows = map(json.loads, (shared / "eval-data" / f"{file}.jsonl").read_text().splitlines())
    text = next(row["text"] for row in rows if row["id"] == item)
    found = find([line.text for line in read_log(text)])
    assert found is not None
    assert found.tool == tool
    assert found.error.startswith(error)
