"""Notes that steps of a workflow leave without a model (spec 4.7): in code's own words, from what the step knows.

A step must not fail or wait for its memory's sake: each of these returns after `wait_seconds` at most, the write goes
on in the background of the client, and what goes wrong is logged. Without a run there is nothing to remember it by.
Credentials are masked before anything leaves the process, and before a text is cut, since half a credential can no
longer be told. The same step noted again counts once.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from lorebus.client import Lorebus
from lorebus.masking.texts import Masker
from lorebus.noting import NoteFields

WAIT_SECONDS = 5.0
PATIENCE_SECONDS = 60.0
"""How long the bus may take to confirm the note, in the background."""
COMMAND_CHARS_MAX = 200
COMMAND_CHARS_READ_MAX = 4_000
"""Of the raw command: far more than masking could shrink to COMMAND_CHARS_MAX."""
FILES_MAX = 50
BRANCHES_NAMED_MAX = 20

Build = Callable[[Masker], NoteFields]


async def record_merge_conflict(
    memory: Lorebus,
    *,
    repository: str,
    run_id: str | None,
    merged_branches: Sequence[str],
    target_branch: str,
    wait_seconds: float = WAIT_SECONDS,
) -> None:
    """After a resolver merged at least one branch; otherwise it writes nothing."""
    if run_id is None or not merged_branches:
        return

    def build(masker: Masker) -> NoteFields:
        return {
            "repository": repository,
            "run_id": run_id,
            "writer": "mergeConflictResolver",
            "summary": masker.mask_text(render_merge(merged_branches, target_branch)),
            "failure_type": "MERGE_CONFLICT",
            "metadata": _mask(masker, {"mergedBranches": list(merged_branches), "targetBranch": target_branch}),
        }

    await _note(memory, build, wait_seconds)


async def record_shell_step(
    memory: Lorebus,
    *,
    repository: str,
    run_id: str | None,
    command: str,
    exit_code: int,
    pushed: bool,
    branch: str,
    committed_sha: str,
    files_changed: Sequence[str],
    image: str | None = None,
    secrets: Sequence[str] = (),
    wait_seconds: float = WAIT_SECONDS,
) -> None:
    """After a step that ended well, changed files and pushed them; otherwise it writes nothing.

    `secrets`: values that the step was given, masked wherever they stand.
    """
    if run_id is None or exit_code != 0 or not pushed or not files_changed:
        return

    def build(masker: Masker) -> NoteFields:
        said = masker.mask_text(command.strip()[:COMMAND_CHARS_READ_MAX], secrets)[:COMMAND_CHARS_MAX]
        about = {"branch": branch, "committedSha": committed_sha, "filesChanged": list(files_changed[:FILES_MAX])}
        return {
            "repository": repository,
            "run_id": run_id,
            "writer": "shellStep",
            "summary": masker.mask_text(render_shell_step(len(files_changed), branch, said), secrets),
            "metadata": _mask(masker, {**about, "image": image}, secrets),
        }

    await _note(memory, build, wait_seconds)


def render_merge(merged_branches: Sequence[str], target_branch: str) -> str:
    named = ", ".join(merged_branches[:BRANCHES_NAMED_MAX])
    more = len(merged_branches) - BRANCHES_NAMED_MAX
    rest = f" and {more} more" if more > 0 else ""
    counted = _count(len(merged_branches), "branch", "branches")
    return f"Resolved merge conflicts of {counted} with {target_branch}: merged {named}{rest}."


def render_shell_step(files: int, branch: str, command: str) -> str:
    return f"A shell step changed {_count(files, 'file', 'files')} and pushed them to {branch}: {command}"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _mask(masker: Masker, metadata: dict[str, Any], secrets: Sequence[str] = ()) -> dict[str, Any]:
    masked = masker.mask_json(metadata, secrets)
    return masked if isinstance(masked, dict) else {}


async def _note(memory: Lorebus, build: Build, wait_seconds: float) -> None:
    await memory.background.run(_publish(memory, build), "a model-free note", wait_seconds)


async def _publish(memory: Lorebus, build: Build) -> None:
    # Compiling the rules takes a moment that other tasks need not wait for.
    note = await asyncio.to_thread(lambda: build(Masker()))
    digest = hashlib.sha256(json.dumps(note, sort_keys=True).encode()).hexdigest()
    await memory.note(patience_seconds=PATIENCE_SECONDS, **{**note, "event_id": f"{note['writer']}:{digest[:32]}"})
