from hypothesis import given
from hypothesis import strategies as st

from libs.common.domain.tokens import count_tokens


def test_a_token_is_counted_as_three_bytes() -> None:
    assert [count_tokens(text) for text in ("", "a", "abc", "abcd", "äöü")] == [0, 1, 1, 2, 2]


@given(st.text(), st.text())
def test_a_longer_text_takes_no_fewer(one: str, other: str) -> None:
    assert count_tokens(one + other) >= count_tokens(one)
