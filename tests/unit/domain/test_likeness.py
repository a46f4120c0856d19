"""Texts that say the same, and texts that are near and do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.common.domain.likeness import is_variant, plain_text

PAIRS = {
    "a version": ("Upgrade jackson to 8.5.75 for the fix.", "Upgrade jackson to 8.5.76 for the fix."),
    "a number": ("The browser tests take 30 minutes.", "The browser tests take 90 minutes."),
    "a name": ("Set retry_count in the client.", "Set retry_limit in the client."),
    "a negation": ("The cache is safe to share here.", "The cache is not safe to share here."),
    "one word": ("Put the hook inside the block.", "Put the hook outside the block."),
    "the order": ("Run lint before build.", "Run build before lint."),
    "an option": ("Build with --no-cache on runners.", "Build with --pull on runners."),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
def test_what_differs_in_little_tells_of_another_thing(pair: tuple[str, str]) -> None:
    assert is_variant(*pair)
    assert is_variant(*reversed(pair))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The linter rejects lines that are too long.", "Lines over the limit: the style check turns them down."),
        ("src/a.c:12:3: unknown type name foo", "src/a.c:19:7: unknown type name foo"),
        ("The build stops.", "The build stops"),
        ("The build of the parser stops early.", "The build of the parser stops early, on every runner."),
    ],
)
def test_other_words_and_other_places_in_a_file_make_no_variant(one: str, other: str) -> None:
    assert not is_variant(one, other)


def test_of_a_long_text_one_more_word_may_be_its_own() -> None:
    long = " ".join(f"word{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(45))
    assert is_variant(f"{long} apple banana cherry", f"{long} dog eel fox")
    assert not is_variant("apple banana cherry", "dog eel fox")


def test_blanks_case_and_places_make_no_other_text() -> None:
    assert plain_text(" The  Parser\nfails at a.c:3:4 ") == plain_text("the parser fails at a.c:9")
    assert plain_text("listens on localhost:8080") != plain_text("listens on port 8081")


@given(st.text(max_size=120), st.text(max_size=120))
def test_variants_are_each_others_and_a_text_is_none_of_its_own(one: str, other: str) -> None:
    assert is_variant(one, other) == is_variant(other, one)
    assert not is_variant(one, one)
