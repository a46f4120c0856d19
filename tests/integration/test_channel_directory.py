"""The directory of channels: registered by bots, owned by administrators, every change audited."""

import asyncio
from typing import Any

import sqlalchemy as sa
from channel_talk import change, new_id, open_channel, tell_turn
from conftest import Installation
from lorebus import ChatChannel, Lorebus

from libs.common.schema import audit


async def audited(installation: Installation, channel: ChatChannel) -> list[dict[str, Any]]:
    query = sa.select(audit.c.action, audit.c.actor, audit.c.before, audit.c.after).order_by(audit.c.id)
    return await installation.rows(query.filter_by(entity_kind="channel", entity_id=channel.key))


async def test_what_a_bot_says_of_a_channel_counts_when_it_becomes_known_and_never_again(
    installation: Installation,
) -> None:
    channel = open_channel(installation, team_id="T1")
    first = await channel.register(is_private=True)
    again = await installation.memory.channel(channel.channel, org_id=channel.org_id, team_id="T2").register(
        is_private=False
    )
    assert first.entry is not None
    assert (first.entry.team_id, first.entry.is_private, first.entry.passive_ingest_enabled) == ("T1", True, False)
    assert again == first


async def test_a_turn_makes_its_channel_known_and_no_later_one_changes_it(installation: Installation) -> None:
    channel = open_channel(installation, team_id="T1")
    await tell_turn(installation, channel, is_private=True)
    other_team = installation.memory.channel(channel.channel, org_id=channel.org_id, team_id="T2")
    await tell_turn(installation, other_team, is_private=False)
    shown = (await channel.show()).entry
    assert shown is not None
    assert (shown.team_id, shown.is_private) == ("T1", True)


async def test_administrators_change_what_they_name_and_it_is_audited(installation: Installation) -> None:
    channel = open_channel(installation, team_id="T1")
    await channel.register()
    entry = await change(channel, is_private=True, passive_ingest_enabled=True)
    await change(channel, is_private=True)
    assert (entry.team_id, entry.is_private, entry.passive_ingest_enabled) == ("T1", True, True)
    registered, changed = await audited(installation, channel)
    assert (registered["action"], registered["actor"], registered["after"]["team_id"]) == (
        "channel.register",
        "writer",
        "T1",
    )
    assert (changed["action"], changed["actor"]) == ("channel.set", "admin")
    assert changed["before"] == {"is_private": False, "passive_ingest_enabled": False}
    assert changed["after"] == {"is_private": True, "passive_ingest_enabled": True}


async def test_a_channel_registered_by_many_at_once_is_one(installation: Installation) -> None:
    channel = open_channel(installation)
    replies = await asyncio.gather(*(channel.register(is_private=n % 2 == 0) for n in range(8)))
    assert len({reply.model_dump_json() for reply in replies}) == 1
    assert len(await audited(installation, channel)) == 1


async def test_an_unknown_channel_is_told_apart_from_an_odd_name(installation: Installation) -> None:
    assert (await open_channel(installation).show()).error == "unknown"
    reply = await installation.memory.connection.client.request("channel.show", b'{"channel": "a/b"}', timeout=5)
    assert b'"error":"invalid_request"' in reply.data


async def test_the_same_id_in_two_organizations_and_tenants_is_as_many_channels(installation: Installation) -> None:
    channel = open_channel(installation, team_id="T1")
    await channel.register()
    elsewhere = installation.memory.channel(channel.channel, org_id=new_id("o"))
    assert (await elsewhere.show()).error == "unknown"
    async with Lorebus(installation.settings.nats_url, new_id("t")) as other:
        assert (await other.channel(channel.channel, org_id=channel.org_id).show()).error == "unknown"


async def test_without_a_service_the_reply_says_so() -> None:
    async with Lorebus("nats://127.0.0.1:1") as memory:
        reply = await memory.channel("C1").register()
    assert (reply.entry, reply.error) == (None, "bus")
