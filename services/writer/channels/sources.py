"""Whose a memory of a channel is, and what the taps hear of it."""

from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from lorebus.contracts.facts.channels import ChannelWritten
from lorebus.contracts.memory import WriteToChannel

from libs.common.channels import Channel
from libs.common.domain.supersession import Supersession
from libs.common.inbox import Claim
from services.writer.rules import Source, evidence_time

AGENT_KEY = "channelAssistant"

Origin = Literal["turn", "passive-ingest"]


@dataclass(frozen=True)
class ChannelSource(Source):
    """The event that channel memory is made from; `repository` is the channel's key."""

    made_from: Origin = "turn"

    def about(self) -> dict[str, Any]:
        return {"tenant": self.tenant, "event_id": self.event_id, "channel": self.repository, "source": self.made_from}

    @property
    def origin(self) -> str:
        """Of a turn its user is held to account, so that one of them cannot silence the others of the channel."""
        user = self.authors[0] if len(self.authors) == 1 else ""
        return f"{self.repository} {self.agent_key} {user}".rstrip()


def source_of_channel(
    message: WriteToChannel, claim: Claim, channel: Channel | None, made_from: Origin
) -> ChannelSource:
    """Whose the channel is the directory says, whatever the message does. None: nobody registered it."""
    receipt = claim.receipt
    return ChannelSource(
        tenant=receipt.tenant,
        schema_name=receipt.schema_name,
        event_id=message.event_id,
        repository=message.key,
        evidence_at=evidence_time(message.occurred_at, receipt.published_at),
        agent_key=AGENT_KEY,
        team_id=channel.team_id if channel else None,
        org_id=channel.org_id if channel else None,
        scope_kind="channel-memory",
        made_from=made_from,
    )


def build_channel_written(
    source: ChannelSource, item_id: UUID, decision: Supersession, *, is_held: bool
) -> ChannelWritten:
    return ChannelWritten(
        **source.about(),
        id=str(item_id),
        held=is_held,
        superseded=[str(id_) for id_ in decision.replaced],
        superseded_by=str(decision.replaced_by) if decision.replaced_by else None,
    )
