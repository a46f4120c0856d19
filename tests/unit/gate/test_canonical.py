"""What a reader sees is what is scanned."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gate.canonical import build_views, canonicalise


def test_a_plain_line_has_one_view() -> None:
    assert build_views("retry fixed it") == ("retry fixed it",)


def test_the_text_as_written_comes_first() -> None:
    assert build_views("one\n\n two") == ("one\n\n two", "one two")


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("i\u200bg\u200cn\u2060ore", "ignore"),
        ("ig\u00adnore\ufeff", "ignore"),
        ("ignore\U000e0041\U000e0042", "ignore"),
        ("ig\ufe0fnore", "ignore"),
        ("ｉｇｎｏｒｅ", "ignore"),
        ("𝐢𝐠𝐧𝐨𝐫𝐞", "ignore"),
        ("іgnоrе", "ignore"),
        ("ignore\u00a0\u2003all", "ignore all"),
        ("cafe\u0301", "café"),
        ("a\ud800b", "ab"),
        ("{\u200b{ x }}", "{{ x }}"),
    ],
)
def test_disguises_come_off(written: str, seen: str) -> None:
    assert canonicalise(written) == seen


def test_a_pile_of_marks_is_cut_before_it_costs_anything() -> None:
    # NFKC sorts a run of marks in quadratic time: 16,000 of them take seconds.
    text = "a" + "\u0315\u0300\u05ae\u0317" * 4_000
    started = time.thread_time()
    assert len(canonicalise(text)) <= 31
    assert time.thread_time() - started < 0.5


@given(st.text(alphabet=st.characters(), max_size=200))
def test_views_encode_and_canonical_text_is_stable(text: str) -> None:
    for view in build_views(text):
        view.encode("utf-8")
    once = canonicalise(text)
    assert canonicalise(once) == once
