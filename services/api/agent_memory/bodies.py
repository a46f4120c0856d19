"""What is taken, and nothing else: limits of sessions spec 4.1. `null` says the same as an absent field."""

import json
from typing import Annotated, Any

from lorebus.contracts.memory import ENTRY_CHARS_MAX
from lorebus.contracts.objects import make_storable
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, StringConstraints

from services.api.agent_memory.violations import METADATA_BYTES_MAX, OVERSIZE
from services.api.names import Name

QUERY_CHARS_MAX = 2_000
PURPOSE_CHARS_MAX = 64
TOKENS_DEFAULT = 2_000
LIMIT_DEFAULT = 10


def _check_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    storable = make_storable(metadata)
    if len(json.dumps(storable, ensure_ascii=False, separators=(",", ":")).encode()) > METADATA_BYTES_MAX:
        raise ValueError(OVERSIZE)
    return storable


WorkId = Annotated[
    str, StringConstraints(pattern=r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$", to_lower=True)
]
Metadata = Annotated[dict[str, Any], AfterValidator(_check_metadata)]
Limit = Annotated[float, Field(ge=1, le=100, allow_inf_nan=False)]
"""A fraction counts as the whole number below it."""


class Place(BaseModel):
    """Where a request looks: in every body, and the query of routes without one."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    work_id: WorkId | None = Field(default=None, alias="workId")
    project_id: Name | None = Field(default=None, alias="projectId")


class OpenSession(Place):
    metadata: Metadata | None = None


class Save(Place):
    content: str = Field(max_length=ENTRY_CHARS_MAX)
    tags: list[Name] | None = None
    metadata: Metadata | None = None
    session_id: Name | None = Field(default=None, alias="sessionId")


class Search(Place):
    query: str = Field(max_length=QUERY_CHARS_MAX)
    limit: Annotated[Limit, Strict()] | None = None
    tags: list[Name] | None = None
    session_id: Name | None = Field(default=None, alias="sessionId")


class BuildContext(Place):
    query: str | None = Field(default=None, max_length=QUERY_CHARS_MAX)
    purpose: str | None = Field(default=None, max_length=PURPOSE_CHARS_MAX)
    session_id: Name | None = Field(default=None, alias="sessionId")
    tokens_max: Annotated[float, Field(ge=100, le=64_000, allow_inf_nan=False), Strict()] | None = Field(
        default=None, alias="maxTokens"
    )


class SessionsPlace(Place):
    limit: Limit | None = None
