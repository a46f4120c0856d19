"""What every engine promises, and that the verdicts are the same with each of them."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gate.engine import Engine, Re2Engine, build_engine, has_fast_engine
from services.gate.loosening import loosen
from services.gate.patterns import Pattern, compile_pattern, load_builtin_patterns
from services.gate.scan import Scan, Scanner
from services.gate.views import build_views

try:
    from services.gate import hyperscan_engine
except ImportError:
    hyperscan_engine = None

IS_FAST = hyperscan_engine is not None and hyperscan_engine.is_trustworthy()
needs_hyperscan = pytest.mark.skipif(not IS_FAST, reason="no Hyperscan here that can be trusted")

BUILTIN = load_builtin_patterns()
BuildEngine = Callable[[Sequence[Pattern]], Engine]


def build_hyperscan(patterns: Sequence[Pattern]) -> Engine:
    assert hyperscan_engine is not None
    return hyperscan_engine.HyperscanEngine(patterns)


ENGINES = [
    pytest.param(Re2Engine, id="re2"),
    pytest.param(build_hyperscan, id="hyperscan", marks=needs_hyperscan),
]


def build_with_shared(patterns: Sequence[Pattern]) -> Engine:
    """The first pattern is among those that are compiled for all sets, beside one that is not in this set."""
    assert hyperscan_engine is not None
    return hyperscan_engine.HyperscanEngine(patterns, [Pattern("absent", "a|e|i|o|u"), *patterns[:1]])


SHARED_ENGINE = pytest.param(build_with_shared, id="hyperscan-shared", marks=needs_hyperscan)


@pytest.fixture(params=[*ENGINES, SHARED_ENGINE])
def build(request: pytest.FixtureRequest) -> BuildEngine:
    return request.param


@pytest.fixture(scope="module", params=ENGINES)
def builtin_engine(request: pytest.FixtureRequest) -> Engine:
    return request.param(BUILTIN)


@pytest.fixture(scope="module")
def fresh() -> Scanner:
    return Scanner(BUILTIN)


@pytest.fixture(scope="module")
def prepared() -> Scanner:
    scanner = Scanner(BUILTIN)
    scanner.prepare()
    return scanner


BLOCKING = {pattern.label for pattern in BUILTIN if pattern.severity == "block"}
REGEXES = {pattern.label: compile_pattern(pattern) for pattern in BUILTIN}


def matched_one_by_one(text: str) -> list[str]:
    views = [view.encode() for view in build_views(text)]
    return [label for label, regex in REGEXES.items() if any(regex.search(view) for view in views)]


def assert_matches(scan: Scan, text: str) -> None:
    """Refused when any pattern that blocks matches any view; readings after the first that refuses are not read."""
    expected = matched_one_by_one(text)
    found = [label for label in (*scan.matched, *scan.watched) if label in REGEXES]
    assert set(found) <= set(expected)
    assert BLOCKING.isdisjoint(found) == BLOCKING.isdisjoint(expected)
    if BLOCKING.isdisjoint(expected):
        assert found == expected


def candidates(engine: Engine, text: str) -> set[int]:
    found = engine.find_candidates(text.encode())
    assert found is not None
    return set(found)


def test_whatever_matches_is_a_candidate(builtin_engine: Engine) -> None:
    missed = [
        pattern.label
        for number, pattern in enumerate(BUILTIN)
        for text in pattern.must_match
        if number not in candidates(builtin_engine, f"Retry fixed it. \n{text}")
        and compile_pattern(pattern).search(f"Retry fixed it. \n{text}".encode())
    ]
    assert missed == []


@pytest.mark.parametrize("text", ["", "\n", "\0", "green", "ünïcödé 😀"])
def test_a_text_without_a_match_has_no_candidates(build: BuildEngine, text: str) -> None:
    assert candidates(build([Pattern("red", r"\bred\b"), Pattern("blue", "blue", "i")]), text) == set()


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (Pattern("ends", r"red$"), "all is red"),
        (Pattern("ends", r"red\z"), "all is red"),
        (Pattern("begins", r"^red"), "red is all"),
        (Pattern("line", r"^red$", "m"), "blue\nred\ngreen"),
        (Pattern("dot", r"a.b", "s"), "a\nb"),
        (Pattern("dot-counts-characters", r"a.{3}b"), "aäö😀b"),
        (Pattern("case", r"größe", "i"), "GRÖSSE GRÖßE"),
        (Pattern("case-of-Kelvin-and-long-s", r"kiss", "i"), "\u212ai\u017f\u017f"),
        (Pattern("a-long-gap", r"a[^{}]{0,120}b"), "a" + "ä" * 120 + "b"),
        (Pattern("braces-of-its-own", r"a\{1,99\}b[{1,99}]+"), "a{1,99}b9"),
        (Pattern("a-class-of-brackets", r"[]{2,50}]+x"), "]]x"),
        (Pattern("quoted", r"\Qa{1,99}\E"), "a{1,99}"),
        (Pattern("one-byte", r"a\Cb"), "axb"),
        (Pattern("lazy-by-flag", r"(?U)a+b"), "aab"),
        (Pattern("NUL", "a\0|b"), "b"),
        (Pattern("nothing", r"x*"), "abc"),
        (Pattern("word", r"\bred\b"), "ä red ß"),
        (Pattern("letters", r"^\pL+$"), "größe"),
        (Pattern("class", r"[[:word:]]{4}"), "word"),
    ],
    ids=lambda value: value.label if isinstance(value, Pattern) else "",
)
def test_what_re2_matches_no_engine_misses(build: BuildEngine, pattern: Pattern, text: str) -> None:
    assert compile_pattern(pattern).search(text.encode()) is not None
    assert candidates(build([Pattern("other", "zzz"), pattern]), text) >= {1}


def test_no_patterns_have_no_candidates(build: BuildEngine) -> None:
    assert candidates(build([]), "anything") == set()


def test_many_threads_share_one_engine(build: BuildEngine) -> None:
    engine = build([Pattern("red", "red"), Pattern("blue", "blue")])
    texts = [b"red " * 500, b"green " * 500] * 100
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(engine.find_candidates, texts))
    assert [0 in (numbers or ()) for numbers in found] == [True, False] * 100
    assert None not in found


@pytest.mark.parametrize(
    ("source", "loosened"),
    [
        (r"a.{0,80}b", r"a.{0,}b"),
        (r"\w{1,16}", r"\w{1,16}"),
        (r"\w{20}", r"\w{20}"),
        (r"\{0,80}", r"\{0,80}"),
        (r"[{0,80}]", r"[{0,80}]"),
        (r"[^]{0,80}]", r"[^]{0,80}]"),
        (r"[[:alpha:]{0,80}]", r"[[:alpha:]{0,80}]"),
        (r"\Q{0,80}\E", r"\Q{0,80}\E"),
    ],
)
def test_only_high_bounds_are_loosened(source: str, loosened: str) -> None:
    assert loosen(source) == loosened


@pytest.mark.skipif(hyperscan_engine is None, reason="no Hyperscan on this platform")
def test_a_faulty_release_is_not_used() -> None:
    assert has_fast_engine() == IS_FAST
    assert isinstance(build_engine([Pattern("red", "red")]), Re2Engine) != IS_FAST


def test_verdicts_on_the_corpus_are_those_of_each_pattern_alone(
    fresh: Scanner, prepared: Scanner, shared: Path
) -> None:
    lines = (shared / "gate-corpus" / "dev.jsonl").read_text().splitlines()
    for text in (json.loads(line)["text"] for line in lines[::4]):
        scan = fresh.scan(text, now=0.0)
        assert prepared.scan(text, now=0.0) == scan
        assert_matches(scan, text)
        assert scan.complete


WORDS = [word for pattern in BUILTIN for text in pattern.must_match for word in text.split()]
PIECES = st.one_of(st.sampled_from(WORDS), st.text(alphabet=st.characters(), max_size=8), st.sampled_from(" \n\v-_`"))


@given(st.lists(PIECES, max_size=30).map(" ".join))
def test_verdicts_on_any_text_are_those_of_each_pattern_alone(fresh: Scanner, prepared: Scanner, text: str) -> None:
    scan = fresh.scan(text, now=0.0)
    assert prepared.scan(text, now=0.0) == scan
    assert_matches(scan, text)
