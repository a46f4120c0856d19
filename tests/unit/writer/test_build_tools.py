"""What compilers, package managers, linters and CI services report, on excerpts of real logs.

Each names the public repository whose log it is from. A report without one is what the tool prints, for
files and packages with invented names.
"""

import pytest

from libs.common.domain.log_lines import read_log
from services.writer.wording.extractors.catalogue import CAUSES
from services.writer.wording.extractors.finding import Extractor, steady
from services.writer.wording.extractors.limits import find_memory, find_network, find_timeout
from services.writer.wording.extractors.lint import find_lint
from services.writer.wording.extractors.native import find_native
from services.writer.wording.extractors.packages import find_packages
from services.writer.wording.extractors.step import find_step

CASES: list[tuple[str, Extractor, str, str]] = [
    (
        "linker: BurntSushi/ripgrep",
        find_native,
        """/target/debug/out/jemalloc/internal/bit_util.h:17: undefined reference to `__ffsdi2'
collect2: error: ld returned 1 exit status""",
        "linker: undefined reference to `__ffsdi2'",
    ),
    (
        "configure: BurntSushi/ripgrep",
        find_native,
        """configure: error: in `/target/debug/build/jemalloc-sys-8599e81d749c60c3/out/build':
configure: error: C compiler cannot create executables""",
        "configure: C compiler cannot create executables",
    ),
    (
        "gcc: pytorch/pytorch",
        find_native,
        (
            "2026-07-30T13:21:30.7886920Z torch/csrc/profiler/kineto_metadata.cpp:128:26: error: "
            "no matching function for call to ‘addMetadata(const MetadataField<long int>&)’"
        ),
        (
            "C compiler (torch/csrc/profiler/kineto_metadata.cpp): "
            "no matching function for call to ‘addMetadata(const MetadataField<long int>&)’"
        ),
    ),
    (
        "MSVC: pytorch/pytorch",
        find_native,
        (
            "C:\\actions-runner\\_work\\pytorch\\pytorch\\xpupti\\XpuptiActivityHandlers.cpp(477): "
            "error C2146: syntax error: missing '>' before identifier 'pti_view'"
        ),
        "MSVC (xpupti\\XpuptiActivityHandlers.cpp): C2146: syntax error: missing '>' before identifier 'pti_view'",
    ),
    (
        "CMake: BVLC/caffe",
        find_native,
        """CMake Error at /usr/share/cmake-3.2/Modules/FindPackageHandleStandardArgs.cmake:138 (message):
  Could NOT find Halide (missing: HALIDE_ROOT_DIR HALIDE_LIBRARIES""",
        (
            "CMake (/usr/share/cmake-3.2/Modules/FindPackageHandleStandardArgs.cmake): "
            "Could NOT find Halide (missing: HALIDE_ROOT_DIR HALIDE_LIBRARIES"
        ),
    ),
    (
        "tsc",
        find_native,
        "src/cart.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.",
        "tsc (src/cart.ts): TS2322: Type 'string' is not assignable to type 'number'",
    ),
    (
        "conda: scikit-learn/scikit-learn",
        find_packages,
        """PackagesNotFoundError: The following packages are not available from current channels:

  - python=3.4
  - numpy=1.10.4

  - https://repo.anaconda.com/pkgs/main/linux-64""",
        (
            "conda: PackagesNotFoundError: The following packages are not available from current channels: "
            "numpy=1.10.4, python=3.4"
        ),
    ),
    (
        "apt: electron/electron",
        find_packages,
        "E: Failed to fetch http://dl.hhvm.com/ubuntu/dists/trusty/Packages  404  Not Found",
        "apt: Failed to fetch http://dl.hhvm.com/ubuntu/dists/trusty/Packages 404 Not Found",
    ),
    (
        "docker: pytorch/pytorch",
        find_packages,
        "Error response from daemon: manifest for python:3.14t not found: manifest unknown: manifest unknown",
        "docker: manifest for python:3.14t not found",
    ),
    (
        "pip",
        find_packages,
        "ERROR: No matching distribution found for not-there-at-all==9",
        "pip: No matching distribution found for not-there-at-all==9",
    ),
    (
        "npm",
        find_packages,
        """npm error code ERESOLVE
npm error ERESOLVE unable to resolve dependency tree
npm error Found: reader@17.0.1
npm error Could not resolve dependency:
npm error peer reader@">=13 <16" from reader-headings@4.1.1""",
        'npm: peer reader@">=13 <16" from reader-headings',
    ),
    (
        "Emacs: purcell/emacs.d",
        find_packages,
        """  require-package(fullframe)
  eval-buffer(#<buffer  *load*-391660> nil "/home/travis/build/purcell/emacs.d/lisp/init-elpa.el" nil t)""",
        "Emacs: require-package(fullframe) fails (lisp/init-elpa.el)",
    ),
    (
        "perlcritic: major/MySQLTuner-perl",
        find_lint,
        "Use IO::Interactive::is_interactive() instead of -t at line 69, column 28.  See page 218.  (Severity: 5)",
        "perlcritic: Use IO::Interactive::is_interactive() instead of -t",
    ),
    (
        "a lint script: bitcoin/bitcoin",
        find_lint,
        """The locale dependent function fprintf(...) appears to be used:
src/bitcoin-cli.cpp:                fprintf(stderr, "RPC password> ");
^---- failure generated from test/lint/lint-locale-dependence.sh""",
        "(test/lint/lint-locale-dependence.sh): The locale dependent function fprintf(...) appears to be used",
    ),
    (
        "tldr-lint: tldr-pages/tldr",
        find_lint,
        "pages/common/mat2.md:3: TLDR004 Command descriptions should end in a period",
        "(pages/common/mat2.md): TLDR004 Command descriptions should end in a period",
    ),
    (
        "standard: jlord/git-it-electron",
        find_lint,
        """Unexpected token ILLEGAL
  /home/travis/build/jlord/git-it-electron/lib/verify/pull_please.js:0:0: node_modules/babel-eslint/toToken.js:56""",
        "standard (lib/verify/pull_please.js): Unexpected token ILLEGAL",
    ),
    (
        "eslint",
        find_lint,
        """/home/ci/build/acme/shop/src/cart.js
  3:7  error  'total' is assigned a value but never used  no-unused-vars""",
        "eslint (src/cart.js): 'total' is assigned a value but never used no-unused-vars",
    ),
    (
        "time limit: pytorch/pytorch",
        find_timeout,
        "2026-07-29T14:40:54.4928479Z ##[error]The action 'Test' has timed out after 360 minutes.",
        "The action 'Test' has timed out after 360 minutes",
    ),
    (
        "time limit: purescript/purescript",
        find_timeout,
        '\x1b[31;1mThe command "$TIMEOUT 35m ci/build.sh" exited with 124.\x1b[0m',
        "the command `$TIMEOUT 35m ci/build.sh` is cut",
    ),
    (
        "memory: pytorch/pytorch",
        find_memory,
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.39 GiB. Process 48849 has 19.36 GiB in use.",
        "CUDA out of memory",
    ),
    (
        "download: redox-os/redox",
        find_network,
        """  * Requesting https://static.redox-os.org/pkg/x86_64-unknown-redox/ipcd.sig
  * Failure 404 Not Found""",
        "a download fails (https://static.redox-os.org/pkg/x86_64-unknown-redox/ipcd.sig): Failure 404 Not Found",
    ),
    (
        "host name: pytorch/pytorch",
        find_network,
        "  Caused by: failed to lookup address information: nodename nor servname provided, or not known",
        "failed to lookup address information: nodename nor servname provided, or not known",
    ),
    (
        "npm script: electron/electron",
        find_step,
        "npm ERR! dugite@1.49.0 postinstall: `node ./script/download-git.js`",
        "npm: script dugite postinstall: `node ./script/download-git.js` fails",
    ),
    (
        "Travis, a command of two lines: atom/atom",
        find_step,
        'The command "script/lint && script/build --no-bootstrap && script/test\n" exited with 1.',
        "the command `script/lint && script/build --no-bootstrap && script/test` fails",
    ),
    (
        "GitHub Actions: pytorch/pytorch",
        find_step,
        "##[error]Process completed with exit code 2.",
        "a step ends with exit code 2",
    ),
    (
        "make: redox-os/redox",
        find_step,
        "make[1]: *** [build/filesystem.bin] Error 101",
        "make: target build/filesystem.bin fails",
    ),
]


@pytest.mark.parametrize(("find", "log", "said"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_report_of_a_build_tool_becomes_a_finding(find: Extractor, log: str, said: str):
    found = find([line.text for line in read_log(log)])
    assert found is not None
    assert found.render() == said


GREEN = """$ make test
collected 12 items
tests/test_errors.py::test_missing_file PASSED
ok   example.com/shop   0.2s
--- PASS: TestErrors (0.00s)
test result: ok. 12 passed; 0 failed
Tests run: 12, Failures: 0, Errors: 0
The command "make test" exited with 0."""


@pytest.mark.parametrize("find", [*CAUSES, find_step], ids=lambda find: find.__name__)
def test_a_green_log_has_no_finding(find: Extractor):
    assert find([line.text for line in read_log(GREEN)]) is None


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("nginx.tmpl:176: undefined variable", "nginx.tmpl: undefined variable"),
        ("instead of -t at line 69, column 28", "instead of -t"),
        ("dugite@1.50.1 postinstall", "dugite postinstall"),
        ("12,973,696 -> 112,950,472", "… -> …"),
        ("timeout of 60000ms exceeded", "timeout of 60000ms exceeded"),
    ],
)
def test_what_changes_between_runs_is_left_out_of_the_sentence(text: str, same: str):
    assert steady(text) == same
