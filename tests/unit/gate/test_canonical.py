"""What a reader sees is what is scanned."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gate.canonical import canonicalise, fold, strip_accents


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("i\u200bg\u200cn\u2060ore", "ignore"),
        ("ig\u00adnore\ufeff", "ignore"),
        ("ignore\U000e0041\U000e0042", "ignore"),
        ("ig\ufe0fnore", "ignore"),
        ("ｉｇｎｏｒｅ", "ignore"),
        ("𝐢𝐠𝐧𝐨𝐫𝐞", "ignore"),
        ("ⓘⓖⓝⓞⓡⓔ", "ignore"),
        ("іgnоrе", "ignore"),
        ("ignore\u00a0\u2003\u2800all", "ignore all"),
        ("cafe\u0301", "café"),
        ("a\ud800b", "ab"),
        ("{\u200b{ x }}", "{{ x }}"),
    ],
)
def test_disguises_come_off(written: str, seen: str) -> None:
    assert canonicalise(written) == seen


@pytest.mark.parametrize(
    ("written", "bare"),
    [
        ("ïgnörę", "ignore"),
        ("i\u0335g\u0336nore", "ignore"),
        ("łøđ", "lod"),
        ("ɪɢɴᴏʀᴇ", "ignore"),
        ("🅸🅶🅽🅾🆁🅴", "IGNORE"),
        ("🇮🇬🇳", "IGN"),
        ("नमस्ते", "नमस्ते"),
    ],
)
def test_letters_lose_what_dresses_them(written: str, bare: str) -> None:
    assert strip_accents(written) == bare


def test_lines_stay_where_only_letters_are_folded() -> None:
    assert fold("zwеi\nZeilen") == "zwei\nZeilen"


def test_a_pile_of_marks_is_cut_before_it_costs_anything() -> None:
    # NFKC sorts a run of marks in quadratic time: 16,000 of them take seconds.
    text = "a" + "\u0315\u0300\u05ae\u0317" * 4_000
    started = time.thread_time()
    assert len(canonicalise(text)) <= 31
    assert time.thread_time() - started < 0.5


@given(st.text(alphabet=st.characters(), max_size=200))
def test_canonical_text_is_stable(text: str) -> None:
    once = canonicalise(text)
    assert canonicalise(once) == once
