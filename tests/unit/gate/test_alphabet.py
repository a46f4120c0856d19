"""In bytes an expression sees whatever it sees in characters."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gate.alphabet import write_expression, write_text
from services.gate.patterns import Pattern, compile_pattern, load_builtin_patterns


@pytest.mark.parametrize("text", ["", "plain\n", "ä", "größe 日本 🔒 ü"])
def test_a_text_has_a_byte_for_each_character(text: str) -> None:
    written = write_text(text.encode())
    assert written is not None
    assert len(written) == len(text)
    assert [byte < 128 for byte in written] == [letter.isascii() for letter in text]


@pytest.mark.parametrize("letter", ["\u212a", "\u017f"], ids=["kelvin", "long-s"])
def test_what_is_another_case_of_ascii_cannot_be_written(letter: str) -> None:
    assert write_text(f"a {letter} b".encode()) is None


@pytest.mark.parametrize(
    "source",
    [r"[^ä]", r"[^a,ä]", "[à-ÿ]", "[a-ÿ]", r"\pL", r"\p{Greek}", r"\PN", r"\x{e4}", r"\xe4", r"\344", r"\C", r"\Qä.\E"],
)
def test_what_bytes_would_narrow_cannot_be_written(source: str) -> None:
    assert write_expression(source) is None


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("größe", "GRÖẞE"),
        ("gr[öo]ße+", "GRÖßEE"),
        (r"a[^b\d]{2}c", "aä日c"),
        (r"\W\S.\bx", "ääÄx"),
        ("[-–—:]日?z", "—z"),
        ("σ", "ς"),
        ("[[:^alpha:]]é", "äÉ"),
    ],
)
def test_what_matches_in_characters_matches_in_bytes(source: str, text: str) -> None:
    assert compile_pattern(Pattern("p", source, "i")).search(text.encode())
    expression, written = write_expression(source), write_text(text.encode())
    assert expression is not None
    assert written is not None
    # Python's engine knows no classes by name; bytes have no cases beyond ASCII there either.
    expression = expression.replace(b"[[:^alpha:]]", b"[^A-Za-z]")
    assert re.search(expression, written, re.IGNORECASE)


def test_every_built_in_pattern_can_be_written() -> None:
    assert [pattern.label for pattern in load_builtin_patterns() if write_expression(pattern.source) is None] == []


@given(st.text(alphabet=st.characters(exclude_characters="\u212a\u017f", exclude_categories=["Cs"])))
def test_the_same_characters_are_the_same_bytes(text: str) -> None:
    whole = write_text(text.encode())
    assert whole == b"".join(write_text(letter.encode()) or b"" for letter in text)
