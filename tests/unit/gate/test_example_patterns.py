"""The patterns that administrators may add hold what they say."""

from pathlib import Path

import pytest

from services.gate.patterns import check_examples, load_builtin_patterns, parse_patterns

FILES = sorted((Path(__file__).parents[3] / "examples/patterns").glob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_example_pattern_may_be_added(file: Path) -> None:
    patterns = parse_patterns(file.read_text("utf-8"))
    assert [problem for pattern in patterns for problem in check_examples(pattern)] == []
    assert {pattern.label for pattern in patterns}.isdisjoint(pattern.label for pattern in load_builtin_patterns())
