"""A run as the writer may use it: without credentials, and without what recall gave its agents.

Done before anything else, so that no later step can store, embed, log or learn either.
"""

from typing import Any, cast

from lorebus.contracts.memory import WriteMemory
from lorebus.contracts.runs import RunFinished

from libs.common.domain.fence import drop_recalled
from libs.common.domain.masking import mask_json, mask_text
from libs.common.domain.strings import map_strings

TEXT_FIELDS = ("ticket", "pull_requests", "change", "attempts", "status")


def clean_text(text: str) -> str:
    return mask_text(drop_recalled(text))


def clean_run(run: RunFinished) -> RunFinished:
    """Transcripts are left out: what the digest takes from them is cleaned piece by piece."""
    fields = run.model_dump(mode="json", by_alias=True, exclude={"transcripts"})
    texts = {name: map_strings(fields[name], drop_recalled) for name in TEXT_FIELDS}
    return RunFinished.model_validate({**fields, **cast("dict[str, Any]", mask_json(texts))})


def clean_note(note: WriteMemory) -> WriteMemory:
    texts = {"summary": note.summary, "rationale": note.rationale, "metadata": note.metadata}
    return note.model_copy(update=cast("dict[str, Any]", mask_json(cast("Any", texts))))
