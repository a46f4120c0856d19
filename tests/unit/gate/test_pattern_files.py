"""Patterns as people write them down: what is no pattern is told plainly, and nothing is guessed."""

import re

import pytest

from services.gate.patterns import EXAMPLES_MAX, Pattern, PatternRejected, check_examples, parse_patterns

ROW = '[[pattern]]\nlabel = "a.b"\nsource = "x"\n'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[[pattern", "this is not TOML"),
        ("pattern = [1]", "[[pattern]] tables"),
        ('title = "mine"\n' + ROW, "nothing beside them"),
        (ROW + 'must_match = "x"\n', "a.b: must_match is a list of texts"),
        (ROW + "must_match = [1]\n", "a.b: must_match is a list of texts"),
        (ROW + "flags = 1\n", "a.b: flags is a text"),
        (ROW + 'severity = "shout"\n', "a.b: severity is block or watch"),
        ("words = 1\n" + ROW, "[words] is a table"),
        ('[words]\nTwo-Parts = "x"\n' + ROW, "[words] Two-Parts: a name of small letters"),
        ("[words]\nverb = 1\n" + ROW, "[words] verb: a name of small letters and '_', and an expression"),
        ('[words]\nverb = "{noun} x"\nnoun = "y"\n' + ROW, "[words] verb: unknown words ['noun']"),
        ('[[pattern]]\nlabel = "a.b"\nsource = "{verb} x"\n', "a.b: unknown words ['verb']"),
    ],
)
def test_what_is_no_pattern_is_rejected_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(PatternRejected, match=re.escape(reason)):
        parse_patterns(text)


def test_a_file_says_what_a_pattern_is() -> None:
    row = ROW + 'flags = "i"\nseverity = "watch"\nmust_match = ["X"]\nmust_not_match = ["y"]\n'
    assert parse_patterns(row) == (Pattern("a.b", "x", "i", ("X",), ("y",), "watch"),)


@pytest.mark.parametrize("label", ["two words", "line\nbreak", "a" * 81, "-dash", "<script>"])
def test_a_label_cannot_carry_a_text(label: str) -> None:
    [problem] = check_examples(Pattern(label, "x", "", ("x",), ("y",)))
    assert problem == "a label is 1-80 letters, digits, '.', '-' or '_'"


@pytest.mark.parametrize("examples", [("x",) * (EXAMPLES_MAX + 1), ("x" * 4_001,)], ids=["many", "long"])
def test_examples_are_bounded(examples: tuple[str, ...]) -> None:
    assert check_examples(Pattern("a.b", "x", "", examples, ("y",))) == [
        "a.b: takes 50 must_match examples of 4000 characters at most"
    ]


def test_the_family_is_what_stands_before_the_first_dot() -> None:
    assert (Pattern("a.b.c", "x").family, Pattern("plain", "x").family) == ("a", "plain")


def test_word_classes_are_put_in_their_places() -> None:
    text = """
    [words]
    verb = "skip|drop"
    order = "always {verb}"
    [[pattern]]
    label = "a.b"
    source = '\\b{order} it{1,2} \\{verb\\} \\p{verb}'
    """
    [pattern] = parse_patterns(text)
    assert pattern.source == r"\b(?:always (?:skip|drop)) it{1,2} \{verb\} \p{verb}"
