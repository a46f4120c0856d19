"""`channel.register`, `channel.set` and `channel.show`: the directory over the bus."""

from collections.abc import Awaitable

from lorebus.contracts.channels import (
    ChannelEntry,
    ChannelError,
    ChannelReply,
    RegisterChannel,
    SetChannel,
    ShowChannel,
)

from libs.common.channels import CHANGEABLE, Channel, ChannelDirectory, NewChannel
from libs.common.errors import StoreUnavailable


class DirectoryDesk:
    """Answers for the directory."""

    def __init__(self, directory: ChannelDirectory) -> None:
        self._directory = directory

    async def register(self, question: RegisterChannel, tenant: str) -> ChannelReply:
        told = NewChannel(question.key, question.team_id, question.is_private)
        return await _reply(self._directory.register(tenant, told))

    async def set(self, question: SetChannel, tenant: str) -> ChannelReply:
        changes = {name: value for name in CHANGEABLE if (value := getattr(question, name)) is not None}
        return await _reply(self._directory.change(tenant, question.key, changes, actor=question.actor))

    async def show(self, question: ShowChannel, tenant: str) -> ChannelReply:
        return await _reply(self._directory.find(tenant, question.key))


async def _reply(look: Awaitable[Channel | None]) -> ChannelReply:
    try:
        channel = await look
    except StoreUnavailable:
        return refuse("store", "the database did not answer; ask again")
    return ChannelReply(entry=build_entry(channel)) if channel else refuse("unknown", "nobody registered this channel")


def refuse(error: ChannelError, reason: str) -> ChannelReply:
    return ChannelReply(error=error, reason=reason)


def build_entry(channel: Channel) -> ChannelEntry:
    return ChannelEntry(**{name: getattr(channel, name) for name in ChannelEntry.model_fields})
