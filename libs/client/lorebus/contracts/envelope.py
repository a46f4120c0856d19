"""What every durable message carries, and how raw bytes become one."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from lorebus.errors import InvalidMessage

MessageT = TypeVar("MessageT", bound=BaseModel)

DEFAULT_TENANT = "default"


def _storable(text: str) -> str:
    """Replaces what Postgres cannot hold: NUL and lone surrogates."""
    if text.isascii():
        return text.replace("\x00", "\N{REPLACEMENT CHARACTER}") if "\x00" in text else text
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return whole.replace("\x00", "\N{REPLACEMENT CHARACTER}")


Text = Annotated[str, AfterValidator(_storable)]
"""Text from outside, made storable."""

Identifier = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_storable)]
"""An id of the publisher's: 1-200 characters."""


def _in_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


Moment = Annotated[datetime, AfterValidator(_in_utc)]
"""RFC 3339; a time without an offset is read as UTC."""

Tenant = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Repository = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\s\x00]+$")]


class Message(BaseModel):
    """Base of all payloads: unknown fields are ignored, so that publishers may run ahead of us."""

    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:
        """`"attempt": null` says the same as no `attempt`: the default counts."""
        if not isinstance(value, Mapping):
            return value
        fields = cast("Mapping[str, Any]", value)
        return {name: field for name, field in fields.items() if field is not None}


class Envelope(Message):
    """What every durable message carries."""

    version: int = Field(default=1, ge=1, le=1)
    event_id: Identifier
    tenant: Tenant | None = None
    occurred_at: Moment | None = None


def parse_message(kind: type[MessageT], body: bytes) -> MessageT:
    """Bytes from the bus as a message of this kind.

    Raises InvalidMessage, whose text names fields and rules but repeats none of the content.
    """
    try:
        return kind.model_validate_json(body)
    except ValidationError:
        # Once more by way of a plain object: what is wrong is told apart there.
        return build_message(kind, parse_object(body))


def parse_object(body: bytes) -> dict[str, Any]:
    """Bytes from the bus as a JSON object, or InvalidMessage."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidMessage("the payload is not JSON in UTF-8") from None
    if not isinstance(value, dict):
        raise InvalidMessage("the payload is JSON, but not an object")
    return cast("dict[str, Any]", value)


def build_message(kind: type[MessageT], fields: Mapping[str, Any]) -> MessageT:
    """These fields as a message of this kind, or InvalidMessage."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise InvalidMessage(_explain(error)) from None


def _explain(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    shown = [
        f"{'.'.join(map(str, fault['loc'][:6])) or 'payload'}: {_rule(fault['type'], fault['msg'])}"
        for fault in faults[:5]
    ]
    more = f" and {len(faults) - 5} more" if len(faults) > 5 else ""
    return "; ".join(shown) + more


def _rule(kind: str, text: str) -> str:
    """The text of a `value_error` is one of ours and repeats no content; of others only the kind is safe."""
    return text.removeprefix("Value error, ") if kind == "value_error" else kind
