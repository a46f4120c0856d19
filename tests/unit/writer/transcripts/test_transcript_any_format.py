"""What holds for every format: any document can be read, whole or cut, and none does harm."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcript_builders import digest_of, groups, lines, transcript

from services.writer.transcripts.formats import FORMATS

KEYS = """type role message content payload id name input arguments output call_id action observation args extras cause
trajectory tool_use_id is_error state metadata function functionCall functionResponse toolInvocation tool_call_id
response command text path value success thought"""
WORDS = """assistant tool tool_use tool_result tool-call tool-result response_item message run function_call finish
function_call_output local_shell_call custom_tool_call bash Bash shell edit { {"output":1} apply_patch
str_replace_editor user error"""
TEXTS = st.sampled_from([*WORDS.split(), "", "\ud800\x00", "x" * 99])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS.split()), inner, max_size=6),
    max_leaves=40,
)


def texts(name: str, content: bytes) -> list[str]:
    return list(digest_of(transcript(content, format=name)).entries().values())


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=40, deadline=None)
@given(records=st.lists(VALUES, max_size=6))
def test_a_record_of_any_shape_gives_a_digest_within_its_bound(name: str, records: list[Any]):
    for content in (lines(*records), json.dumps(records).encode(), json.dumps({"trajectory": records}).encode()):
        assert sum(map(len, texts(name, content))) <= 4_000


@pytest.mark.parametrize("name", FORMATS)
@settings(deadline=None)
@given(content=st.binary(max_size=400), chunk_bytes=st.integers(min_value=1, max_value=50))
def test_any_bytes_are_read_alike_however_they_are_cut(name: str, content: bytes, chunk_bytes: int):
    assert groups(name, content, chunk_bytes) == groups(name, content)


HOSTILE = {
    "lists": b"[" * 200_000,
    "objects": b'{"a":' * 200_000,
    "lists in a trajectory": b'{"trajectory":' + b"[" * 200_000,
    "objects in a trajectory": b'{"trajectory": [' + b'{"action":' * 200_000,
    "number": b'{"n": ' + b"9" * 9_000 + b"}",
    "not text": b"\xff\xfe",
}


@pytest.mark.parametrize("name", [name for name in FORMATS if not name.startswith("aider")])
@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_document_gives_nothing(name: str, content: bytes):
    assert [record for group in groups(name, content) for record in group] == []


def three(*, bare: bool = False, **fields: Any) -> bytes:
    """Three equal records, a line each or as a list."""
    return json.dumps([fields] * 3, ensure_ascii=False).encode() if bare else lines(*[fields] * 3)


CLAUDE = three(message={"role": "assistant", "content": [{"type": "text", "text": "é"}]})
SAMPLES = {
    "claude-code-jsonl": CLAUDE,
    "mastra-jsonl": three(type="tool-call", toolCallId="1", toolName="bash", input={"command": "é"}),
    "swe-agent-traj": b'{"trajectory": ' + three(bare=True, action="ls", observation="é", thought="t") + b"}",
    "openhands-events": three(bare=True, action="run", id=1, args={"command": "é"}),
    "codex-rollout-jsonl": three(type="function_call_output", call_id="1", output="é"),
    "aider-chat-history-md": "#### do\n\nI will.\n\n> Applied edit to a.py\n\n#### /run make\n> é\n".encode(),
}


@pytest.mark.parametrize("name", FORMATS)
def test_how_the_bytes_are_cut_into_chunks_changes_nothing(name: str):
    whole = groups(name, SAMPLES[name])
    assert [record for group in whole for record in group]
    assert [groups(name, SAMPLES[name], size) for size in (1, 2, 5, 64)] == [whole] * 4


@pytest.mark.parametrize("name", FORMATS)
def test_a_document_that_is_cut_off_gives_what_came_before(name: str):
    content = SAMPLES[name]
    whole = [group for group in groups(name, content) if group]
    cut = [group for group in groups(name, content[: len(content) * 3 // 4], 16) if group]
    # The last group of a text may be a part of it.
    assert cut
    assert cut[:-1] == whole[: len(cut) - 1]


def test_lines_that_are_no_json_are_skipped():
    content = b"not json\n[1]\nnull\n" + CLAUDE + b'{"cut": '
    assert groups("claude-code-jsonl", content) == groups("claude-code-jsonl", CLAUDE)


def test_long_lines_are_not_searched_again_and_again():
    """A search that is quadratic would take hours over these."""
    spaces = " " * 2_000_000
    patch = {"type": "custom_tool_call", "name": "apply_patch", "call_id": "1", "input": f"*** Add File: a{spaces}b"}
    assert len(groups("codex-rollout-jsonl", lines(patch))[0]) == 1
    step = {"action": "edit 1:1", "observation": "[File: " * 300_000}
    assert len(groups("swe-agent-traj", json.dumps({"trajectory": [step]}).encode())) == 1


def test_arguments_nested_out_of_measure_do_no_harm():
    deep = b"[" * 200_000 + b"]" * 200_000
    action = b'{"action": "browse", "id": 1, "args": {"x": ' + deep + b"}}"
    assert texts("openhands-events", b"[" + action + b', {"observation": "error", "cause": 1, "content": "no"}]') == [
        "browse: no"
    ]
