"""What the model answered, read: found in the text, checked, made storable, masked and cut.

Nothing that code decides can come from here: the outcome, the evidence and the other keys it sets itself are taken
out of the model's metadata. Faults name fields and never repeat content.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, cast

from lorebus.contracts.envelope import Text
from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    field_validator,
)

from libs.common.domain.masking import mask_json, mask_text
from libs.common.domain.strings import map_strings
from libs.common.language_model.port import ANSWER_CHARS_MAX
from libs.common.language_model.reading import find_objects
from services.writer.wording.account import HIGH, LOW, MEDIUM
from services.writer.wording.lesson import RATIONALE_CHARS_MAX, SUMMARY_CHARS_MAX

METADATA_KEYS_MAX = 20
METADATA_BYTES_MAX = 4_096
KEY_CHARS_MAX = 100
VALUE_CHARS_MAX = 500
LIST_ITEMS_MAX = 20
INTEGER_MAX = 2**53
RESERVED = frozenset(
    (
        # of every lesson
        "outcome", "reportedoutcome", "evidence", "failurekind", "history", "transcripts",
        "writer", "writtenby", "model", "costusd", "confidence",
        # of merged lessons, channel memory and the model-free writers (spec 1.1)
        "consolidatedfrom", "clustersize", "userslackid", "source", "branch", "committedsha", "fileschanged", "image",
        "mergedbranches", "targetbranch",
    )
)  # fmt: skip
"""Metadata that code sets or reads, without case and underscores."""

_GRADES = {"high": HIGH, "medium": MEDIUM, "low": LOW}
_SENTENCE_END = re.compile(r"[.!?。！？](?=\s|$)")


def _lowered(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


def _none_is_null(value: Any) -> Any:
    if isinstance(value, str):
        return None if value.strip().lower() in {"", "null", "none"} else value.strip().upper()
    return value


def _object_or_null(value: Any) -> Any:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


class LessonAnswer(BaseModel):
    """What the model is asked for (spec 4.3)."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True, populate_by_name=True)

    failure_type: Annotated[
        Literal["CI_FAILURE", "REVIEW_REJECTION", "SECURITY_VIOLATION", "MERGE_CONFLICT"] | None,
        BeforeValidator(_none_is_null),
    ] = Field(default=None, validation_alias=AliasChoices("failure_type", "failureType"))
    lesson_summary: Text = Field(validation_alias=AliasChoices("lesson_summary", "lessonSummary"))
    rationale: Text
    metadata: Annotated[dict[str, Any] | None, BeforeValidator(_object_or_null)] = None
    confidence: Annotated[Literal["high", "medium", "low"], BeforeValidator(_lowered)]

    @field_validator("lesson_summary", "rationale")
    @classmethod
    def _has_words(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("is blank")
        return text


ANSWER_SCHEMA: dict[str, Any] = LessonAnswer.model_json_schema(by_alias=True)


@dataclass(frozen=True, slots=True)
class WordedLesson:
    """The model's part of a lesson."""

    summary: str
    rationale: str
    failure_type: str | None
    confidence: float
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Unreadable:
    faults: str
    """For the model, to do better."""


def read_answer(text: str) -> WordedLesson | Unreadable:
    """The first object in the text that fits; code fences, thoughts and courtesies around it do not matter."""
    if len(text) > ANSWER_CHARS_MAX:
        return Unreadable("it is far too long")
    faults = "it holds no JSON object"
    for fields in find_objects(text):
        try:
            return _word_lesson(LessonAnswer.model_validate(fields))
        except ValidationError as error:
            faults = _explain(error)
    return Unreadable(faults)


def _explain(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"`{fault['loc'][0]}`: {_rule(fault['type'], fault['msg'])}" for fault in faults)


def _rule(kind: str, text: str) -> str:
    """`literal_error` lists what is allowed; texts of other kinds are not needed to mend the fault."""
    return text.removeprefix("Value error, ") if kind in {"value_error", "literal_error"} else kind.replace("_", " ")


def _word_lesson(answer: LessonAnswer) -> WordedLesson:
    return WordedLesson(
        summary=_tidy(answer.lesson_summary, SUMMARY_CHARS_MAX),
        rationale=_tidy(answer.rationale, RATIONALE_CHARS_MAX),
        failure_type=answer.failure_type,
        confidence=_GRADES[answer.confidence],
        metadata=keep_metadata(answer.metadata or {}),
    )


def _tidy(text: str, chars_max: int) -> str:
    """Masked before it is cut: half a credential has no shape."""
    return cut_at_sentence(mask_text(text).strip(), chars_max)


def cut_at_sentence(text: str, chars_max: int) -> str:
    """Up to the last whole sentence, where one ends in the second half of what fits."""
    if len(text) <= chars_max:
        return text
    ends = [end.end() for end in _SENTENCE_END.finditer(text[: chars_max + 1]) if end.end() <= chars_max]
    return text[: ends[-1]] if ends and ends[-1] > chars_max // 2 else f"{text[: chars_max - 1]}…"


def keep_metadata(metadata: Mapping[str, JsonValue]) -> dict[str, Any]:
    """Those entries that are small, flat, storable and not code's own."""
    allowed = {name: value for name, value in metadata.items() if _is_allowed(name, value)}
    kept: dict[str, Any] = {}
    for name, value in cast("dict[str, Any]", mask_json(allowed)).items():
        entry = {_without_nul(name): map_strings(value, _without_nul)}
        if len(kept) < METADATA_KEYS_MAX and _size(kept | entry) <= METADATA_BYTES_MAX:
            kept |= entry
    return kept


def _is_allowed(name: str, value: Any) -> bool:
    is_reserved = re.sub(r"[\W_]", "", name).lower() in RESERVED
    return (
        bool(name.strip()) and len(name) <= KEY_CHARS_MAX and not is_reserved and (_is_scalar(value) or _is_list(value))
    )


def _is_list(value: Any) -> bool:
    items = cast("list[Any]", value) if isinstance(value, list) else None
    return items is not None and len(items) <= LIST_ITEMS_MAX and all(map(_is_scalar, items))


def _is_scalar(value: Any) -> bool:
    match value:
        case bool() | None:
            return True
        case str():
            return len(value) <= VALUE_CHARS_MAX
        case int() | float():
            return abs(value) <= INTEGER_MAX
        case _:
            return False


def _without_nul(text: str) -> str:
    """Lone surrogates, the other thing that Postgres does not take, went with the masking."""
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}")


def _size(fields: Mapping[str, Any]) -> int:
    return len(json.dumps(fields, ensure_ascii=False).encode())
