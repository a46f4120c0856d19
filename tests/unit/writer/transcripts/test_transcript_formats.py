"""What each format calls a shell, a write and a failure, on records like those that its agent leaves behind."""

import json
from typing import Any

import pytest
from transcript_builders import digest_of, lines, transcript

from services.writer.transcripts.digest import Digest


def digest(name: str, content: bytes) -> Digest:
    return digest_of(transcript(content, format=name))


def entries(found: Digest) -> list[str]:
    return list(found.entries().values())


# Mastra: no recording of it is public, so these follow what is said of it.


def ai_sdk(call_id: str, tool: str, arguments: dict[str, Any], output: Any) -> list[dict[str, Any]]:
    call = {"type": "tool-call", "toolCallId": call_id, "toolName": tool, "input": arguments}
    result = {"type": "tool-result", "toolCallId": call_id, "toolName": tool, "output": output}
    return [{"role": "assistant", "content": [call]}, {"role": "tool", "content": [result]}]


def google(tool: str, arguments: dict[str, Any], output: Any) -> list[dict[str, Any]]:
    call = {"functionCall": {"name": tool, "args": arguments}}
    answer = {"functionResponse": {"name": tool, "response": output}}
    return [{"role": "model", "parts": [call]}, {"role": "user", "parts": [answer]}]


def mastra(*records: Any) -> list[str]:
    return entries(digest("mastra-jsonl", lines(*({"request": {"messages": record}} for record in records))))


@pytest.mark.parametrize(
    ("output", "is_listed"),
    [
        ("Command finished (exit code 2):\nno rule", True),
        ("Command finished (exit code -1):\nkilled", True),
        ("Command failed: timed out", True),
        ("Command finished (exit code 0):\nCommand failed: not really", False),
        ("then Command finished (exit code 2)", False),
    ],
    ids=["exit code", "negative exit code", "failed", "zero", "not at the start"],
)
def test_a_mastra_command_fails_by_its_own_form_at_the_start(output: str, is_listed: bool):
    messages = ai_sdk("1", "bash", {"command": "make"}, {"type": "json", "value": {"output": output}})
    assert mastra(messages) == ([f"make\n→ {output}"] if is_listed else [])


@pytest.mark.parametrize(
    ("tool", "key", "opening"),
    [
        ("readFile", "content", "Error reading file:"),
        ("writeFile", "result", "Error writing file:"),
        ("listDirectory", "listing", "Error listing directory:"),
        ("writeFile", "result", "Write blocked:"),
        ("writeFile", "result", "SECURITY CHECK FAILED:"),
    ],
    ids=["read", "write", "list", "blocked", "security"],
)
def test_a_workspace_tool_fails_by_the_text_it_returns(tool: str, key: str, opening: str):
    failed = ai_sdk("1", tool, {"path": "a.py"}, {"type": "json", "value": {key: f"{opening} no"}})
    quoted = ai_sdk("2", tool, {"path": "a.py"}, {"type": "json", "value": {key: f"said {opening}"}})
    other = ai_sdk("3", "fetchUrl", {"path": "a.py"}, {"type": "text", "value": f"{opening} no"})
    assert mastra([*failed, *quoted, *other]) == [f"{tool} a.py: {opening} no"]


def test_a_request_that_repeats_the_conversation_counts_each_call_once():
    turns = [ai_sdk(f"c{n}", "writeFile", {"path": "a.py", "content": "same"}, "ok") for n in range(3)]
    assert mastra(turns[0], turns[0] + turns[1]) == []
    assert mastra(turns[0], turns[0] + turns[1], turns[0] + turns[1] + turns[2]) == ["a.py: written 3 times"]


def test_calls_keyed_by_their_tool_are_paired_by_position():
    failed = google("bash", {"command": "two"}, {"output": "Command failed: 2"})
    turns = [google("bash", {"command": "one"}, {"output": "Command finished (exit code 0):"}), failed]
    (calls, answers) = ([turn[0] for turn in turns], [turn[1] for turn in turns])
    assert mastra([*calls, *answers]) == ["two\n→ Command failed: 2"]


def test_replays_without_ids_are_told_apart_by_input_and_result():
    turns = [google("writeFile", {"path": "a.py", "content": f"{n}"}, {"result": "ok"}) for n in range(3)]
    history: list[list[dict[str, Any]]] = [[m for turn in turns[:n] for m in turn] for n in (1, 2, 3)]
    assert mastra(*history) == ["a.py: written 3 times"]


def test_two_calls_alike_without_ids_count_as_one():
    turn = google("writeFile", {"path": "a.py", "content": "same"}, {"result": "ok"})
    assert mastra([*turn, *turn, *turn]) == []


def test_an_id_that_is_the_tools_name_is_no_id():
    named = [ai_sdk("writeFile", "writeFile", {"path": "a.py", "content": f"{n}"}, "ok") for n in range(3)]
    assert mastra([message for turn in named for message in turn]) == ["a.py: written 3 times"]


def test_a_mastra_result_marked_as_error_is_a_failed_tool():
    marked = ai_sdk("1", "fetchUrl", {"url": "x"}, {"type": "error-text", "value": "boom"})
    assert mastra(marked) == ['fetchUrl {"url": "x"}: boom']


def test_the_messages_of_other_providers_are_found_too():
    anthropic = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "bash", "input": {"command": "x"}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": '{"output": "Command failed: a"}'}
        ]},
    ]  # fmt: skip
    function = {"name": "bash", "arguments": '{"command": "y"}'}
    openai = [
        {"role": "assistant", "content": "say", "tool_calls": [{"id": "b", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "b", "content": "Command failed: b"},
    ]
    invocation = {"state": "result", "toolCallId": "c", "toolName": "bash", "args": {"command": "z"}}
    stored = [{"type": "tool-invocation", "toolInvocation": {**invocation, "result": {"output": "Command failed: c"}}}]
    assert mastra([*anthropic, *openai, *stored]) == [
        "x\n→ Command failed: a",
        "y\n→ Command failed: b",
        "z\n→ Command failed: c",
        "say",
    ]


def test_what_a_tool_returned_is_not_searched_for_calls():
    inside = ai_sdk("2", "bash", {"command": "fake"}, "Command failed: fake")
    assert mastra(ai_sdk("1", "readFile", {"path": "a.json"}, {"type": "json", "value": {"content": inside}})) == []


# SWE-agent


def swe_agent(*steps: tuple[str, str], **fields: Any) -> list[str]:
    trajectory = [{"action": action, "observation": seen, "thought": "", **fields} for action, seen in steps]
    document = {"environment": "x", "trajectory": trajectory, "history": [], "info": {}}
    return entries(digest("swe-agent-traj", json.dumps(document, indent=2).encode()))


def test_a_swe_agent_edit_fails_by_its_opening():
    refused = "Your proposed edit has introduced new syntax error(s).\nERRORS:\n- E999"
    state = {"open_file": "/r/a.py"}
    assert swe_agent(("edit 1:2\nx\nend_of_edit", refused), state=state) == [f"edit /r/a.py: {refused}"]
    assert swe_agent(("open b.py", "File b.py not found")) == ["open b.py: File b.py not found"]


def test_a_swe_agent_command_fails_by_how_its_output_begins():
    traceback = "Traceback (most recent call last):\n  x\nValueError: 1"
    quiet = ("cat log", "seen: Traceback (most recent call last):")
    missing = ("mak", "/bin/bash: line 1: mak: command not found")
    assert swe_agent(("python a.py\n", traceback), quiet, missing) == [
        f"python a.py\n→ {traceback}",
        f"mak\n→ {missing[1]}",
    ]


def test_a_swe_agent_edit_writes_the_open_file():
    shown = "[File: /r/a.py (9 lines total)]\n1:x"
    steps = [("create a.py", shown), ("edit 1:1\nx\nend_of_edit", shown), ("edit 2:2\nx\nend_of_edit", shown)]
    old = json.dumps({"open_file": "n/a", "working_dir": "/r"})
    assert swe_agent(*steps, state=old) == ["/r/a.py: written 3 times"]
    assert swe_agent(*steps, state={"open_file": "/r/b.py"}) == ["/r/b.py: written 3 times"]


def test_a_swe_agent_editor_says_in_its_first_argument_what_it_does():
    written = [(f"str_replace_editor {verb} /r/a.py --x 1", "ok") for verb in ("create", "str_replace", "insert")]
    looked_at = [("str_replace_editor view /r/b.py", "ok")] * 3
    assert swe_agent(*written, *looked_at) == ["/r/a.py: written 3 times"]


def test_equal_steps_of_swe_agent_count_each():
    assert swe_agent(*[("str_replace_editor insert /a.py 1", "ok")] * 3) == ["/a.py: written 3 times"]


# OpenHands

RUN = {"id": 1, "source": "agent", "action": "run", "args": {"command": "make", "thought": ""}}
FAILED = {"id": 2, "cause": 1, "observation": "run", "content": "no rule", "extras": {"exit_code": 2}}
EVENTS = [
    {"id": 0, "source": "user", "action": "message", "args": {"content": "Fix it"}},
    RUN,
    FAILED,
    {"id": 3, "action": "read", "args": {"path": "a.py"}},
    {"id": 4, "cause": 3, "observation": "error", "content": "no such file"},
    *({"id": n, "action": "write", "args": {"path": "b.py", "content": "x"}} for n in (5, 7, 9)),
    *({"id": n + 1, "cause": n, "observation": "write", "content": "", "extras": {"path": "b.py"}} for n in (5, 7, 9)),
    {"id": 11, "source": "agent", "action": "finish", "args": {"final_thought": "Fixed."}},
]
EVENT_ENTRIES = ["read a.py: no such file", "make\n→ Exit code 2\nno rule", "b.py: written 3 times", "Fixed."]


@pytest.mark.parametrize(
    "content",
    [lines(*EVENTS), json.dumps(EVENTS, indent=1).encode(), b"\n " + json.dumps(EVENTS).encode()],
    ids=["lines", "array", "array after blanks"],
)
def test_openhands_events_are_read_as_lines_and_as_an_array(content: bytes):
    assert entries(digest("openhands-events", content)) == EVENT_ENTRIES


def test_an_openhands_observation_without_a_cause_answers_the_action_before_it():
    run = {key: value for key, value in RUN.items() if key != "id"}
    failed = {"observation": "run", "content": "", "extras": {"metadata": {"exit_code": 1}}}
    changed = {"observation": "agent_state_changed", "content": "", "extras": {}}
    assert entries(digest("openhands-events", lines(run, changed, failed, failed))) == ["make\n→ Exit code 1"]


@pytest.mark.parametrize("exit_code", [0, -1, None, "1"], ids=["success", "not ended", "absent", "odd"])
def test_an_openhands_command_without_a_failing_exit_code_has_not_failed(exit_code: object):
    seen = {**FAILED, "extras": {"exit_code": exit_code}}
    assert digest("openhands-events", lines(RUN, seen)).is_empty


# Codex


def codex(*items: dict[str, Any]) -> list[str]:
    return entries(digest("codex-rollout-jsonl", lines(*({"type": "response_item", "payload": one} for one in items))))


def codex_call(name: str, arguments: Any, output: Any, call_id: str = "c1") -> list[dict[str, Any]]:
    call = {"type": "function_call", "name": name, "arguments": json.dumps(arguments), "call_id": call_id}
    return [call, {"type": "function_call_output", "call_id": call_id, "output": output}]


HEADER = "Chunk ID: {}\nWall time: 0.{} seconds\nProcess exited with code 2\nOriginal token count: 4\nOutput:\nno rule"


@pytest.mark.parametrize(
    ("name", "arguments", "output"),
    [
        ("shell", {"command": ["bash", "-lc", "make"]}, '{"output": "no rule", "metadata": {"exit_code": 2}}'),
        ("shell", {"command": ["make"]}, {"content": "no rule", "metadata": {"exit_code": 2}}),
        ("exec_command", {"cmd": "make"}, HEADER.format("a1", 1)),
        ("shell_command", {"command": "make"}, "Exit code: 2\nWall time: 1 seconds\nOutput:\nno rule"),
    ],
    ids=["metadata", "object", "header", "short header"],
)
def test_a_codex_command_fails_by_its_exit_code(name: str, arguments: Any, output: Any):
    assert codex(*codex_call(name, arguments, output)) == ["make\n→ Exit code 2\nno rule"]


def test_equal_codex_failures_are_one_whatever_their_times():
    calls = [codex_call("exec_command", {"cmd": "make"}, HEADER.format(n, n), call_id=str(n)) for n in (1, 2)]
    assert codex(*calls[0], *calls[1]) == ["make\n→ Exit code 2\nno rule"]


def test_a_codex_shell_item_of_the_model_is_a_command():
    call = {"type": "local_shell_call", "call_id": "l", "action": {"type": "exec", "command": ["ls", "x y"]}}
    output = {"type": "local_shell_call_output", "call_id": "l", "output": '{"output":"","metadata":{"exit_code":1}}'}
    assert codex(call, output) == ["ls x y\n→ Exit code 1"]


def test_a_codex_command_that_ended_well_has_not_failed():
    assert codex(*codex_call("shell", {"command": ["make"]}, '{"output": "x", "metadata": {"exit_code": 0}}')) == []
    assert codex(*codex_call("exec_command", {"cmd": "cat log"}, "Exit code: 1\nsaid the log")) == []


def patch(*files: str) -> str:
    return "*** Begin Patch\n" + "".join(f"*** Update File: {file}\n@@\n-a\n+b\n" for file in files) + "*** End Patch"


def test_a_codex_patch_writes_the_files_it_names():
    ok = '{"output": "Success", "metadata": {"exit_code": 0}}'
    own = [
        {"type": "custom_tool_call", "name": "apply_patch", "input": patch("a.py", "b.py"), "call_id": "p"},
        {"type": "custom_tool_call_output", "call_id": "p", "output": ok},
    ]
    function = codex_call("apply_patch", {"input": patch("a.py")}, ok, "f")
    script = codex_call("shell", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{patch('a.py')}\nEOF"]}, ok, "s")
    assert codex(*own, *function, *script) == ["a.py: written 3 times"]


def test_a_codex_patch_that_does_not_fit_is_a_failed_tool():
    told = "apply_patch verification failed: Failed to find expected lines"
    assert codex(*codex_call("apply_patch", {"input": patch("a.py")}, told)) == [f"apply_patch a.py: {told}"]


def test_codex_items_without_an_envelope_are_read_too():
    content = [{"type": "output_text", "text": "Done."}]
    assert entries(
        digest("codex-rollout-jsonl", lines({"type": "message", "role": "assistant", "content": content}))
    ) == ["Done."]


# aider

HISTORY = b"""
# aider chat started at 2026-01-02 03:04:05

> Aider v0.75.1
> Main model: some model with diff edit format

#### fix the loop
#### and test it

I will fix it.

a.py
```python
<<<<<<< SEARCH
=======
>>>>>>> REPLACE
```

> Tokens: 1k sent, 9 received.
> Applied edit to a.py
> Commit abc1234 fix: loop

#### /test pytest -q

> 1 failed
> Added 1 line of output to the chat.

Once more.

> The LLM did not conform to the edit format.
> # 1 SEARCH/REPLACE block failed to match!
> Applied edit to a.py
> Applied edit to a.py

#### /run make
> Error: no rule
> Add 0.1k tokens of command output to the chat? (Y)es/(N)o [Yes]: y
> Added 1 line of output to the chat.

All done now.

Really.
> Tokens: 1k sent, 9 received.
"""


REFUSED = "The LLM did not conform to the edit format.\n# 1 SEARCH/REPLACE block failed to match!"


def test_an_aider_history_tells_edits_tests_and_the_last_text():
    assert entries(digest("aider-chat-history-md", HISTORY)) == [
        f"edit: {REFUSED}\nApplied edit to a.py\nApplied edit to a.py",
        "pytest -q\n→ 1 failed\nAdded 1 line of output to the chat.",
        "a.py: written 3 times",
        "All done now.\n\nReally.",
    ]


def test_an_aider_command_that_could_not_run_has_failed():
    assert entries(digest("aider-chat-history-md", b"#### !mak it\n> Error running command: no mak\n")) == [
        "mak it\n→ Error running command: no mak"
    ]
