"""Chat channels: their names, the directory that says what may be done with each, and the memory they write.

A channel is known by its own id within its organization: two organizations may use the same id and never meet. Its
one name within the tenant, `channel_key`, joins the two; `lorebus settings --channel` and consolidation take that.
"""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, StringConstraints

from lorebus.contracts.envelope import Envelope, Identifier, Message, Text

ChannelId = Annotated[Text, StringConstraints(pattern=r"^[^\s/\x00]{1,128}$")]
"""As the chat names it."""
OrganizationId = Annotated[Text, StringConstraints(pattern=r"^[^\s/\x00]{1,64}$")]
TeamId = OrganizationId
ChannelError = Literal[
    "invalid_request",
    "unknown",
    "inactive",
    "matched",
    "incomplete",
    "forgotten",
    "over_budget",
    "gate",
    "embedder",
    "store",
    "bus",
    "deadline",
]
"""`bus` and `deadline` are the client's words: no service answered, or not in time."""


def channel_key(org_id: str | None, channel: str) -> str:
    """`acme/C024BE7LH`; without an organization the id alone. Neither part holds a slash."""
    return channel if org_id is None else f"{org_id}/{channel}"


def split_channel_key(key: str) -> tuple[str | None, str]:
    """The organization and the id."""
    organization, slash, channel = key.rpartition("/")
    return (organization if slash else None), channel


class ChannelQuestion(Message):
    """A question about one channel."""

    channel: ChannelId
    org_id: OrganizationId | None = None

    @property
    def key(self) -> str:
        return channel_key(self.org_id, self.channel)


class RegisterChannel(ChannelQuestion):
    """`channel.register`: makes a channel known. One that is known stays as it is: then administrators own it."""

    team_id: TeamId | None = None
    is_private: bool | None = None
    """None: what administrators have set for channels of which nobody says it."""


class SetChannel(ChannelQuestion):
    """`channel.set`, for administrators: what is named is changed, and audited. Makes an unknown channel known."""

    actor: Identifier
    team_id: TeamId | None = None
    is_private: bool | None = None
    is_active: bool | None = None
    passive_ingest_enabled: bool | None = None
    consolidation_enabled: bool | None = None
    org_flagging_enabled: bool | None = None


class ShowChannel(ChannelQuestion):
    """`channel.show`: what the directory says of it."""


class ChannelEntry(Message):
    """A channel as the directory has it."""

    channel: str
    org_id: str | None = None
    team_id: str | None = None
    is_private: bool = False
    """Never read from another channel."""
    is_active: bool = True
    """An inactive one is written to by nobody, and read by no other channel."""
    passive_ingest_enabled: bool = False
    consolidation_enabled: bool = True
    """Whether an ambient pass merges what says the same."""
    org_flagging_enabled: bool = False
    ingest_cursor: str | None = None
    """The newest message that passive ingestion has seen: hand in what comes after it."""
    flagged_at: datetime | None = None
    """When the organization's notes were last looked through for it."""
    created_at: datetime | None = None

    @property
    def key(self) -> str:
        return channel_key(self.org_id, self.channel)


class ChannelReply(Message):
    entry: ChannelEntry | None = None
    error: ChannelError | None = None
    reason: str | None = None


class EditMemory(ChannelQuestion):
    """`channel.edit`, for administrators: other words for one memory of a channel, at least one of the two."""

    id: UUID
    summary: Annotated[Text, StringConstraints(pattern=r"\S")] | None = None
    rationale: Annotated[Text, StringConstraints(pattern=r"\S")] | None = None
    actor: Identifier


class EditReply(Message):
    id: str | None = None
    error: ChannelError | None = None
    reason: str | None = None
    patterns: list[str] = Field(default_factory=list[str])


class AskFlagged(ChannelQuestion):
    """`channel.flagged`: the words of notes that `channel_flagged` told of, as far as the channel may read them now."""

    ids: list[UUID] = Field(max_length=8)


class FlaggedNote(Message):
    id: str
    channel: str
    """Whose note it is: a channel's key."""
    summary: str


class FlaggedReply(Message):
    """`block` is ready for a prompt; what the gate refuses, and what may not be read any more, is left out."""

    notes: list[FlaggedNote] = Field(default_factory=list[FlaggedNote])
    block: str = ""
    error: ChannelError | None = None
    reason: str | None = None


class ChannelMessage(Message):
    """One message of a chat."""

    ts: Annotated[str, StringConstraints(pattern=r"^\d{1,20}(\.\d{1,20})?$")]
    """A number that grows: Slack's timestamp, or another chat's growing id."""
    user_id: Identifier | None = None
    text: Text = ""
    bot: bool = False


class AmbientPass(Envelope):
    """`channel.ambient`: digest, consolidation, passive ingestion, flagging; whatever of it fails, the rest is done."""

    schema_: Literal["channel.ambient"] = Field(default="channel.ambient", alias="schema")
    channel: ChannelId
    org_id: OrganizationId | None = None
    messages: list[ChannelMessage] = Field(default_factory=list[ChannelMessage], max_length=500)

    @property
    def key(self) -> str:
        return channel_key(self.org_id, self.channel)
