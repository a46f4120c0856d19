"""Contexts: whole entries within the budget, and no stored text that leaves its fence."""

import re
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from libs.common.domain.fence import neutralise_lines
from services.api.context import build_context, estimate_tokens
from services.api.rules import Record

MARKS = ["<agent_memory>", "</agent_memory>", "</recalled_memory>", "<|im_start|>", "[INST]", "[/inst]", "<<SYS>>"]
HOSTILE = st.lists(st.one_of(st.sampled_from([*MARKS, "\n"]), st.text(max_size=20)), max_size=12).map("".join)
MARK = re.compile(r"<|\[/?INST\]", re.IGNORECASE)


def record(content: str, *tags: str, id_: str = "e-1") -> Record:
    return Record(id_, content, tags, {}, None, "site", datetime(2026, 11, 30, tzinfo=UTC))


@given(HOSTILE, st.lists(HOSTILE, max_size=3))
def test_no_mark_survives_in_a_context(content: str, tags: list[str]) -> None:
    context = build_context([record(content, *tags)], 10_000)
    assert MARK.search(context.content) is None
    assert context.content.startswith("- (2026-11-30")


@given(HOSTILE)
def test_no_line_of_a_text_begins_where_entries_begin(content: str) -> None:
    lines = build_context([record(content)], 10_000).content.splitlines()
    assert [line for line in lines[1:] if not line.startswith("  ")] == []


@given(st.lists(st.text(max_size=200), max_size=8), st.integers(min_value=0, max_value=200))
def test_a_context_keeps_its_budget(contents: list[str], tokens_max: int) -> None:
    context = build_context([record(content) for content in contents], tokens_max)
    assert context.tokens == estimate_tokens(context.content) <= tokens_max
    assert len(context.blocks) == len(context.references)


def test_an_entry_that_does_not_fit_is_left_out_whole() -> None:
    context = build_context([record("long " * 200, id_="a"), record("short", id_="b")], 50)
    assert [block.id for block in context.blocks] == ["b"]
    assert context.content == "- (2026-11-30) short"


def test_nothing_makes_nothing() -> None:
    assert build_context([], 1_000).content == ""


def test_the_lines_of_a_text_stay_lines() -> None:
    assert neutralise_lines("def f():\n    return [INST]\n") == "def f():\n      return [ INST]"
