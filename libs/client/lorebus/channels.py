"""A chat channel as its bot and its administrators use it.

channel = memory.channel("C024BE7LH", org_id="acme", team_id="payments")
recalled = await channel.recall(text)
reply = answer(recalled.block, text)
await channel.tell_turn(user_id=user, text=text, reply=reply)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar, Unpack
from uuid import UUID, uuid4

from lorebus.asking import Unanswered, ask
from lorebus.connection import Connection
from lorebus.contracts.channels import (
    AmbientPass,
    AskFlagged,
    ChannelMessage,
    ChannelQuestion,
    ChannelReply,
    EditMemory,
    EditReply,
    FlaggedReply,
    RegisterChannel,
    SetChannel,
    ShowChannel,
    channel_key,
)
from lorebus.contracts.envelope import Envelope, build_message, parse_message
from lorebus.contracts.memory import WriteChannelMessages, WriteChannelTurn
from lorebus.contracts.recall import RecallReply
from lorebus.contracts.subjects import (
    CHANNEL_AMBIENT,
    CHANNEL_EDIT,
    CHANNEL_FLAGGED,
    CHANNEL_REGISTER,
    CHANNEL_SET,
    CHANNEL_SHOW,
    MEMORY_WRITE,
    subject_for,
)
from lorebus.errors import InvalidMessage
from lorebus.recalling import ask_recall
from lorebus.sending import PATIENCE_SECONDS, Published, pack, send

DEADLINE_SECONDS = 1.0
ANSWER_SECONDS = 5.0

ReplyT = TypeVar("ReplyT", ChannelReply, EditReply, FlaggedReply)


class ChannelChanges(TypedDict, total=False):
    """What an administrator can change of a channel, as SetChannel declares it."""

    team_id: str
    is_private: bool
    is_active: bool
    passive_ingest_enabled: bool
    consolidation_enabled: bool
    org_flagging_enabled: bool


@dataclass(frozen=True, slots=True)
class ChatChannel:
    """One channel. Wrong arguments raise InvalidMessage; an answer that does not come is told in the reply."""

    connection: Connection
    tenant: str
    channel: str
    org_id: str | None = None
    team_id: str | None = None

    @property
    def key(self) -> str:
        """Its one name within the tenant, as settings, consolidation and facts have it."""
        return channel_key(self.org_id, self.channel)

    async def register(self, *, is_private: bool | None = None) -> ChannelReply:
        """Makes the channel known, best before anything is written to it. One that is known stays as it is."""
        return await self._ask(
            CHANNEL_REGISTER, RegisterChannel, ChannelReply, {"team_id": self.team_id, "is_private": is_private}
        )

    async def show(self) -> ChannelReply:
        return await self._ask(CHANNEL_SHOW, ShowChannel, ChannelReply, {})

    async def set(self, *, actor: str, **changes: Unpack[ChannelChanges]) -> ChannelReply:
        """For administrators: changes what is named, with an audit row. It counts at the next read."""
        return await self._ask(CHANNEL_SET, SetChannel, ChannelReply, {"actor": actor, **changes})

    async def recall(
        self, query: str, *, limit: int | None = None, deadline_seconds: float = DEADLINE_SECONDS
    ) -> RecallReply:
        """What this channel remembers that fits; places left are filled from public channels of its team."""
        fields = {**self._place(), "query": query, "limit": limit, "deadline_ms": round(deadline_seconds * 1000)}
        return await ask_recall(self.connection, self.tenant, fields)

    async def digest(self, *, deadline_seconds: float = DEADLINE_SECONDS) -> RecallReply:
        """The newest of what this channel remembers."""
        return await self.recall("*", deadline_seconds=deadline_seconds)

    async def tell_turn(
        self,
        *,
        user_id: str,
        text: str,
        reply: str,
        event_id: str | None = None,
        is_private: bool | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> Published:
        """Tells what somebody asked and what was answered. Under an `event_id` of your own it counts once."""
        fields = {**self._place(), "user_id": user_id, "text": text, "reply": reply, "is_private": is_private}
        return await self._send(WriteChannelTurn, MEMORY_WRITE, fields, event_id, patience_seconds)

    async def tell_messages(
        self,
        messages: Sequence[ChannelMessage | Mapping[str, Any]],
        *,
        event_id: str | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> Published:
        """Hands in a page of messages, of which a channel that has opted in keeps a few facts."""
        fields = {**self._place(), "messages": list(messages)}
        return await self._send(WriteChannelMessages, MEMORY_WRITE, fields, event_id, patience_seconds)

    async def request_ambient(
        self,
        messages: Sequence[ChannelMessage | Mapping[str, Any]] = (),
        *,
        event_id: str | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> Published:
        """Asks for everything that is done for a channel while nobody asks it anything."""
        fields = {**self._place(), "messages": list(messages)}
        return await self._send(AmbientPass, CHANNEL_AMBIENT, fields, event_id, patience_seconds)

    async def flagged(self, ids: Sequence[str | UUID], *, deadline_seconds: float = ANSWER_SECONDS) -> FlaggedReply:
        """The notes of other channels that `channel_flagged` told of, ready for a prompt."""
        return await self._ask(CHANNEL_FLAGGED, AskFlagged, FlaggedReply, {"ids": list(ids)}, deadline_seconds)

    async def edit(
        self,
        id_: str | UUID,
        *,
        actor: str,
        summary: str | None = None,
        rationale: str | None = None,
        deadline_seconds: float = ANSWER_SECONDS,
    ) -> EditReply:
        """For administrators: other words for one memory. They pass the gate, or nothing is changed."""
        fields = {"id": id_, "actor": actor, "summary": summary, "rationale": rationale}
        return await self._ask(CHANNEL_EDIT, EditMemory, EditReply, fields, deadline_seconds)

    def _place(self) -> dict[str, Any]:
        return {"channel": self.channel, "org_id": self.org_id, "team_id": self.team_id}

    async def _send(
        self, kind: type[Envelope], subject: str, fields: Mapping[str, Any], event_id: str | None, patience: float
    ) -> Published:
        message = build_message(kind, {"event_id": event_id or str(uuid4()), **fields})
        return await send(self.connection, pack("message", message, subject, self.tenant), patience)

    async def _ask(
        self,
        subject: str,
        question: type[ChannelQuestion],
        reply: type[ReplyT],
        fields: Mapping[str, Any],
        deadline_seconds: float = ANSWER_SECONDS,
    ) -> ReplyT:
        asked = build_message(question, {"channel": self.channel, "org_id": self.org_id, **fields})
        body = asked.model_dump_json(exclude_none=True).encode()
        subject = subject_for(subject, self.tenant)
        try:
            return parse_message(reply, await ask(self.connection, subject, lambda _left: body, deadline_seconds))
        except Unanswered as silence:
            return reply(error="deadline" if silence.reason == "deadline" else "bus", reason=silence.detail)
        except InvalidMessage as fault:
            return reply(error="bus", reason=f"the answer to {subject} cannot be read: {fault}")
