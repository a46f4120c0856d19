"""What is taken: unknown fields are ignored, since other versions of the client send more."""

from typing import Annotated, Any

from lorebus.contracts.memory import ENTRY_CHARS_MAX
from lorebus.contracts.objects import JsonObject, make_storable
from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from services.api.names import Id, Name

QUERY_CHARS_MAX = 64_000
TOKENS_DEFAULT = 2_000
TOKENS_MAX = 64_000

Cursor = Annotated[
    str,
    StringConstraints(pattern=r"^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|sessions:[\s\S]{0,128})?$"),
    AfterValidator(make_storable),
]
"""`next` of the page before; empty: the first page."""


class Body(BaseModel):
    """`"sessionId": null` says the same as none."""

    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)

    project: Name | None = None


class StartSession(Body):
    session_id: Id | None = Field(default=None, alias="sessionId")
    metadata: JsonObject | None = None
    cwd: Any = None


class EndSession(Body):
    session_id: Id = Field(alias="sessionId")


class Remember(Body):
    content: str = Field(max_length=ENTRY_CHARS_MAX)
    tags: list[Id] | None = Field(default=None, validation_alias=AliasChoices("tags", "concepts"))
    metadata: JsonObject | None = None
    session_id: Id | None = Field(default=None, alias="sessionId")


class SmartSearch(Body):
    query: str = Field(max_length=QUERY_CHARS_MAX)
    limit: float = Field(default=10, ge=1, le=100, validation_alias=AliasChoices("topK", "limit"))
    tags: list[Id] | None = None
    session_id: Id | None = Field(default=None, alias="sessionId")


class BuildContext(Body):
    query: str | None = Field(default=None, max_length=QUERY_CHARS_MAX)
    purpose: str | None = None
    session_id: Id | None = Field(default=None, alias="sessionId")
    tokens_max: float = Field(
        default=TOKENS_DEFAULT,
        ge=1,
        le=TOKENS_MAX,
        validation_alias=AliasChoices("tokenBudget", "maxTokens", "budget"),
    )


class Filter(BaseModel):
    id: Id


class Forget(Body):
    """One entry by `filter.id` or `memoryId`, a session's, or some of those."""

    filter: Filter | None = None
    memory_id: Id | None = Field(default=None, alias="memoryId")
    session_id: Id | None = Field(default=None, alias="sessionId")
    observation_ids: list[Id] | None = Field(default=None, alias="observationIds", max_length=1_000)

    @model_validator(mode="after")
    def _names_something(self) -> "Forget":
        if not (self.filter or self.memory_id or self.session_id):
            raise ValueError("name filter.id, memoryId or sessionId")
        return self
