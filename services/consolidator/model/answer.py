"""What the model answered, read: found in the text, checked, made storable, masked and cut."""

import re
from typing import Annotated, Any, Literal

from lorebus.contracts.envelope import Text
from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from libs.common.domain.masking import mask_text
from libs.common.language_model.port import ANSWER_CHARS_MAX
from libs.common.language_model.reading import find_objects
from services.consolidator.rules import RATIONALE_CHARS_MAX, SUMMARY_CHARS_MAX, Wording

_SENTENCE_END = re.compile(r"[.!?。！？](?=\s|$)")


def _known_type(value: Any) -> Any:
    """Any word for none is none."""
    text = value.strip().upper() if isinstance(value, str) else value
    return None if text in {"", "NULL", "NONE", "GENERAL"} else text


class MergedLesson(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True, populate_by_name=True)

    lesson_summary: Annotated[Text, Field(pattern=r"\S")] = Field(
        validation_alias=AliasChoices("lesson_summary", "lessonSummary", "summary")
    )
    rationale: Annotated[Text, Field(pattern=r"\S")]
    failure_type: Annotated[
        Literal["CI_FAILURE", "REVIEW_REJECTION", "SECURITY_VIOLATION", "MERGE_CONFLICT"] | None,
        BeforeValidator(_known_type),
    ] = Field(default=None, validation_alias=AliasChoices("failure_type", "failureType"))


class MergeAnswer(BaseModel):
    """What the model is asked for (spec 6)."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    lessons: list[MergedLesson] = Field(min_length=1, max_length=2)


ANSWER_SCHEMA: dict[str, Any] = MergeAnswer.model_json_schema()


def read_answer(text: str) -> list[Wording] | str:
    """One or two texts, or what is wrong with the answer: fields and rules, never its content."""
    if len(text) > ANSWER_CHARS_MAX:
        return "it is far too long"
    faults = "it holds no JSON object"
    for fields in find_objects(text):
        try:
            return [_word(lesson) for lesson in MergeAnswer.model_validate(fields).lessons]
        except ValidationError as error:
            faults = _explain(error)
    return faults


def _explain(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"`{'.'.join(map(str, fault['loc']))}`: {fault['type'].replace('_', ' ')}" for fault in faults[:5])


def _word(lesson: MergedLesson) -> Wording:
    summary, rationale = _tidy(lesson.lesson_summary, SUMMARY_CHARS_MAX), _tidy(lesson.rationale, RATIONALE_CHARS_MAX)
    return Wording(summary, rationale, lesson.failure_type)


def _tidy(text: str, chars_max: int) -> str:
    """Masked before it is cut: half a credential has no shape. Whole sentences, where one ends late enough."""
    whole = mask_text(text).replace("\x00", "\N{REPLACEMENT CHARACTER}").strip()
    if len(whole) <= chars_max:
        return whole
    ends = [end.end() for end in _SENTENCE_END.finditer(whole[: chars_max + 1]) if end.end() <= chars_max]
    return whole[: ends[-1]] if ends and ends[-1] > chars_max // 2 else f"{whole[: chars_max - 1]}…"
