"""`memory.write` and `memory.save`: memories that no run's evidence stands behind (contract 2.4).

`memory.delete`: memories that are to be forgotten (contract 2.5).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self, cast
from uuid import UUID

from pydantic import AfterValidator, Field, ModelWrapValidatorHandler, StringConstraints, model_validator

from lorebus.contracts.channels import ChannelId, ChannelMessage, OrganizationId, TeamId, channel_key
from lorebus.contracts.envelope import Envelope, Identifier, Message, Repository, Text
from lorebus.contracts.objects import JsonObject
from lorebus.contracts.runs import Readable

FailureType = Literal["CI_FAILURE", "REVIEW_REJECTION", "SECURITY_VIOLATION", "MERGE_CONFLICT"]
SaveRefusal = Literal[
    "invalid_request",
    "matched",
    "incomplete",
    "origin_quarantined",
    "forgotten",
    "gate",
    "embedder",
    "store",
    "in_work",
    "conflict",
    "bus",
    "deadline",
]
"""`bus` and `deadline` are the client's words: no service answered, or not in time."""

TARGETS = ("ids", "person", "session_id", "event_ids")
IDS_MAX = 1_000


ENTRY_CHARS_MAX = 64_000
NAME_CHARS_MAX = 128
"""Of a project, a session and a tag (sessions spec 4.1)."""


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("blank")
    return text


Name = Annotated[Text, StringConstraints(min_length=1, max_length=NAME_CHARS_MAX)]


class AnyWrite(Envelope):
    """What `memory.write` and `memory.save` carry: read as this, a message is of the class that its `kind` names."""

    @model_validator(mode="wrap")
    @classmethod
    def _by_kind(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if cls is not AnyWrite or not isinstance(value, Mapping):
            return handler(value)
        fields = cast("Mapping[str, Any]", value)
        kinds = {"entry": WriteEntry, "channel_turn": WriteChannelTurn, "channel_messages": WriteChannelMessages}
        return cast("Self", kinds.get(str(fields.get("kind")), WriteMemory).model_validate(fields))


class WriteEntry(AnyWrite):
    """What an agent or its host wants remembered in a project, within a session or without one."""

    schema_: Literal["memory.write"] = Field(default="memory.write", alias="schema")
    kind: Literal["entry"] = "entry"
    project: Name
    session_id: Name | None = None
    content: Annotated[Text, StringConstraints(max_length=ENTRY_CHARS_MAX), AfterValidator(_not_blank)]
    tags: list[Name] = Field(default_factory=list[str])
    metadata: JsonObject = Field(default_factory=dict)


class WriteMemory(AnyWrite):
    """A note that its writer worded itself: what a step did, without a model."""

    schema_: Literal["memory.write"] = Field(default="memory.write", alias="schema")
    kind: Literal["note"]
    repository: Repository
    run_id: Identifier | None = None
    workflow_id: Text | None = None
    writer: Identifier
    """Who says so: `mergeConflictResolver`, `shellStep`, or a name of the caller's."""
    summary: Text = Field(min_length=1)
    rationale: Text = ""
    failure_type: Readable[FailureType] = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    supersede: bool = True
    """False keeps older twins active: for imports and evaluations."""


class WriteToChannel(AnyWrite):
    """What a channel's memory is made of."""

    schema_: Literal["memory.write"] = Field(default="memory.write", alias="schema")
    channel: ChannelId
    org_id: OrganizationId | None = None
    team_id: TeamId | None = None
    """Whose it is, and `is_private`: both count when the channel becomes known, and never again."""
    is_private: bool | None = None

    @property
    def key(self) -> str:
        return channel_key(self.org_id, self.channel)


class WriteChannelTurn(WriteToChannel):
    """What somebody asked the channel's assistant, and what it answered."""

    kind: Literal["channel_turn"] = "channel_turn"
    user_id: Identifier
    """Whose words these are: an erasure of this person finds the memory."""
    text: Text
    reply: Text


class WriteChannelMessages(WriteToChannel):
    """A page of what people said among themselves. Read only where the channel has opted in."""

    kind: Literal["channel_messages"] = "channel_messages"
    messages: list[ChannelMessage] = Field(max_length=500)


class SaveReply(Message):
    """The stored memory, or why there is none."""

    id: str | None = None
    created_at: datetime | None = None
    held: bool = False
    """It is stored, and recalled only once an administrator has released it."""
    error: SaveRefusal | None = None
    reason: str | None = None
    patterns: list[str] = Field(default_factory=list[str])


class DeleteMemory(Envelope):
    """Forgets memories, with everything that was merged from them. Says once which: by ids, person, session or events.

    `ids` may be empty, which forgets nothing.
    """

    schema_: Literal["memory.delete"] = Field(default="memory.delete", alias="schema")
    ids: list[UUID] | None = Field(default=None, max_length=IDS_MAX)
    person: Identifier | None = None
    """A chat user: every channel memory that is attributed to them, in every channel."""
    session_id: Identifier | None = None
    event_ids: list[Identifier] | None = Field(default=None, max_length=IDS_MAX)
    """Runs and notes by their event ids: also those that became no memory, but dead letters, say."""
    actor: Identifier
    """Who asks for it; kept in the audit."""
    reason: Text = Field(default="", max_length=500)

    @model_validator(mode="after")
    def _names_one_target(self) -> Self:
        named = [name for name in TARGETS if getattr(self, name) is not None]
        if len(named) != 1:
            raise ValueError(f"name one of {', '.join(TARGETS)}, not {' and '.join(named) or 'none'}")
        return self
