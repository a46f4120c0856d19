"""What the model answered, read: found in the text, checked, masked and cut; who said it is code's to say."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

from lorebus.contracts.channels import ChannelMessage
from lorebus.contracts.envelope import Text
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from libs.common.domain.masking import mask_text
from libs.common.language_model.port import ANSWER_CHARS_MAX
from libs.common.language_model.reading import find_objects
from services.writer.channels.wording import FACTS_MAX, Fact, Wording, cut

AnswerT = TypeVar("AnswerT", bound=BaseModel)
ResultT = TypeVar("ResultT")


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True, populate_by_name=True)


class TurnAnswer(_Answer):
    summary: Annotated[Text, Field(pattern=r"\S")] = Field(
        validation_alias=AliasChoices("summary", "lessonSummary", "lesson_summary")
    )
    rationale: Text = ""


class FactAnswer(TurnAnswer):
    messages: list[int] = Field(default_factory=list[int])


class FactsAnswer(_Answer):
    facts: list[FactAnswer]


class FlagAnswer(_Answer):
    notes: list[int]


def read_flags(text: str, candidates: int) -> list[int] | str:
    """The places of the notes that the channel should hear of, from 0."""
    return _read(
        text,
        FlagAnswer,
        lambda answer: [number - 1 for number in dict.fromkeys(answer.notes) if 1 <= number <= candidates],
    )


def read_turn(text: str) -> Wording | str:
    """The words, or what is wrong with the answer: fields and rules, never its content."""
    return _read(text, TurnAnswer, _word)


def read_facts(text: str, messages: Sequence[ChannelMessage]) -> list[Fact] | str:
    return _read(text, FactsAnswer, lambda answer: [_attribute(fact, messages) for fact in answer.facts[:FACTS_MAX]])


def _read(text: str, kind: type[AnswerT], build: Callable[[AnswerT], ResultT]) -> ResultT | str:
    if len(text) > ANSWER_CHARS_MAX:
        return "it is far too long"
    faults = "it holds no JSON object"
    for fields in find_objects(text):
        try:
            return build(kind.model_validate(fields))
        except ValidationError as error:
            faults = _explain(error)
    return faults


def _attribute(fact: FactAnswer, messages: Sequence[ChannelMessage]) -> Fact:
    """Whose messages it rests on; where the model names none that is there, all of them, so that erasing finds it."""
    named = [messages[number - 1] for number in fact.messages if 1 <= number <= len(messages)] or messages
    return Fact(_word(fact), tuple(dict.fromkeys(one.user_id for one in named if one.user_id)))


def _word(answer: TurnAnswer) -> Wording:
    """Masked before it is cut: half a credential has no shape."""
    return Wording(cut(mask_text(answer.summary)), cut(mask_text(answer.rationale)))


def _explain(error: ValidationError) -> str:
    faults: list[Any] = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"`{'.'.join(map(str, fault['loc']))}`: {fault['type'].replace('_', ' ')}" for fault in faults[:5])
