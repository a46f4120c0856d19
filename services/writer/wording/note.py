"""A note that its writer worded itself, cut to what a memory may hold (spec 4.7)."""

import json
from typing import Any

from lorebus.contracts.memory import WriteMemory

from services.writer.wording.lesson import RATIONALE_CHARS_MAX, SUMMARY_CHARS_MAX, Lesson

METADATA_CHARS_MAX = 16_000
"""As JSON; of a longer object the members that no longer fit are left out, and counted."""


def build_note(note: WriteMemory) -> Lesson:
    """Its confidence is not graded: nobody read evidence."""
    return Lesson(
        summary=note.summary[:SUMMARY_CHARS_MAX],
        rationale=note.rationale[:RATIONALE_CHARS_MAX],
        failure_type=note.failure_type,
        confidence=None,
        metadata=bound_metadata(note.metadata),
    )


def bound_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    left = METADATA_CHARS_MAX
    for key, value in metadata.items():
        size = len(key) + len(json.dumps(value))
        if size <= left:
            kept[key] = value
            left -= size
    return kept if len(kept) == len(metadata) else {**kept, "members_omitted": len(metadata) - len(kept)}
