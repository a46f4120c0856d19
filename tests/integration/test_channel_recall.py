"""What a channel recalls: its own memory first, public channels of its team to fill up, never more."""

import os
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from channel_talk import change, id_of, memories_of, new_id, open_channel, tell_turn, with_model
from conftest import Installation, run_services
from embeddings import embedding_provider
from lorebus import ChatChannel, Lorebus, RecallReply
from lorebus.contracts.recall import RecallRequest

from libs.common.database import create_pool
from libs.common.domain.calibration import Background
from libs.common.settings import CommonSettings
from services.gate.app import PROGRAM as GATE
from services.recall.app import PROGRAM as RECALL
from services.recall.channels import OtherChannels
from services.recall.limits import Limits
from services.recall.rules import EVERYTHING_PASSES, ScopeName
from services.recall.store import Question
from services.writer.app import PROGRAM as WRITER

QUESTION = Question(
    scope=ScopeName("default", "channel-memory", "C1"),
    model_id=1,
    vector=np.zeros(4, np.float32),
    terms=(),
    terms_known=(),
    background_size=0,
    created_after=datetime(1, 1, 1, tzinfo=UTC),
    background=Background(mean=0.1, sd=0.05),
    bars=EVERYTHING_PASSES,
    limit=5,
)

ASKED = "How do I roll back the payments service?"
ELSEWHERE = "Roll back the payments service with shipit rollback payments, it takes four minutes to roll back."
OWN = "Payments can be rolled back by the on-call person alone, who has the key of the bastion host."


async def recall(channel: ChatChannel, query: str = ASKED, **options: Any) -> RecallReply:
    reply = await channel.recall(query, deadline_seconds=5, **options)
    assert not reply.degraded, reply
    return reply


async def told(installation: Installation, channel: ChatChannel, reply: str = ELSEWHERE, **fields: Any) -> str:
    event = await tell_turn(installation, channel, reply=reply, text="", **fields)
    return str(id_of(event))


class TestOwn:
    async def test_a_channel_recalls_what_was_told_it(self, installation: Installation) -> None:
        channel = open_channel(installation)
        id_ = await told(installation, channel)
        [item] = (await recall(channel)).items
        assert (item.id, item.from_other_channel) == (id_, False)

    async def test_its_newest_are_its_digest(self, installation: Installation) -> None:
        channel = open_channel(installation)
        subjects = ("plums", "printers", "tides", "kernels", "violins", "tunnels", "cheeses", "glaciers", "hedges")
        replies = [f"The {one} of the office are looked after by the {one} committee." for one in subjects]
        ids = [await told(installation, channel, reply) for reply in replies]
        digest = await channel.digest(deadline_seconds=5)
        assert [item.id for item in digest.items] == ids[::-1]


class TestOthers:
    async def test_public_channels_of_the_team_fill_the_places_left_and_are_marked(
        self, installation: Installation
    ) -> None:
        channel = open_channel(installation, team_id="T1")
        other = open_channel(installation, org_id=channel.org_id, team_id="T1")
        own_id, other_id = await told(installation, channel, OWN), await told(installation, other)
        reply = await recall(channel)
        assert [(item.id, item.from_other_channel) for item in reply.items] == [(own_id, False), (other_id, True)]
        first, second = [line for line in reply.block.splitlines() if line.startswith("- ")]
        assert "from another channel" not in first
        assert "from another channel" in second

    async def test_own_notes_that_fill_the_limit_leave_no_place(self, installation: Installation) -> None:
        channel = open_channel(installation, team_id="T1")
        other = open_channel(installation, org_id=channel.org_id, team_id="T1")
        own_id, _ = await told(installation, channel, OWN), await told(installation, other)
        assert [item.id for item in (await recall(channel, limit=1)).items] == [own_id]

    async def test_what_both_say_is_given_once_as_the_own(self, installation: Installation) -> None:
        channel = open_channel(installation, team_id="T1")
        other = open_channel(installation, org_id=channel.org_id, team_id="T1")
        own_id, _ = await told(installation, channel), await told(installation, other)
        assert [item.id for item in (await recall(channel)).items] == [own_id]

    async def test_a_channel_that_nobody_knows_is_whose_the_question_says(self, installation: Installation) -> None:
        other = open_channel(installation, team_id="T1")
        id_ = await told(installation, other)
        unknown = open_channel(installation, org_id=other.org_id, team_id="T1")
        teamless = open_channel(installation, org_id=other.org_id)
        assert [item.id for item in (await recall(unknown)).items] == [id_]
        assert (await recall(teamless)).items == []

    async def test_what_the_question_says_of_a_known_channel_counts_for_nothing(
        self, installation: Installation
    ) -> None:
        theirs = open_channel(installation, team_id="T2")
        await told(installation, theirs)
        channel = open_channel(installation, org_id=theirs.org_id, team_id="T1")
        await channel.register()
        lying = installation.memory.channel(channel.channel, org_id=channel.org_id, team_id="T2")
        assert (await recall(lying)).items == []

    async def test_a_change_of_privacy_team_or_activity_counts_at_the_next_read(
        self, installation: Installation
    ) -> None:
        channel = open_channel(installation, team_id="T1")
        other = open_channel(installation, org_id=channel.org_id, team_id="T1")
        await channel.register()
        id_ = await told(installation, other)
        for hiding, showing in (
            ({"is_private": True}, {"is_private": False}),
            ({"is_active": False}, {"is_active": True}),
            ({"team_id": "T2"}, {"team_id": "T1"}),
        ):
            await change(other, **hiding)
            assert (await recall(channel)).items == [], hiding
            await change(other, **showing)
            assert [item.id for item in (await recall(channel)).items] == [id_], showing


READERS = {
    "itself": {"channel": "own"},
    "channel of its team": {"team_id": "T1"},
    "private channel of its team": {"team_id": "T1", "is_private": True},
    "channel of another team": {"team_id": "T2"},
    "channel without a team": {},
    "same id in another organization": {"channel": "own", "org_id": "other", "team_id": "T1"},
    "channel of the team's name in another organization": {"org_id": "other", "team_id": "T1"},
    "same id without an organization": {"channel": "own", "org_id": None, "team_id": "T1"},
    "same place of another tenant": {"channel": "own", "team_id": "T1", "tenant": "other"},
}
MAY_READ_PUBLIC = {"itself", "channel of its team", "private channel of its team"}
MAY_READ_PRIVATE = {"itself"}


@pytest.mark.parametrize("is_known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("is_private", [False, True], ids=["public", "private"])
@pytest.mark.parametrize("reader", READERS)
async def test_who_reads_a_channels_memory(
    installation: Installation, reader: str, *, is_private: bool, is_known: bool
) -> None:
    """The privacy matrix: who asks, by what the channel is, and whether the directory knows who asks."""
    source = open_channel(installation, team_id="T1")
    id_ = await told(installation, source, is_private=is_private)
    place = dict(READERS[reader])
    name = source.channel if place.pop("channel", None) else new_id()
    org_id = {"other": new_id("o"), None: None}.get(place.pop("org_id", "same"), source.org_id)
    tenant = new_id("t") if place.pop("tenant", None) else "default"
    asks_privately = place.pop("is_private", False)
    async with Lorebus(installation.settings.nats_url, tenant) as memory:
        channel = memory.channel(name, org_id=org_id, team_id=place.get("team_id"))
        if is_known and reader != "itself":
            assert (await channel.register(is_private=asks_privately)).entry
        found = {item.id for item in (await recall(channel)).items}
        listed = {item.id for item in (await channel.digest(deadline_seconds=5)).items}
    may_read = reader in (MAY_READ_PRIVATE if is_private else MAY_READ_PUBLIC)
    assert found == ({id_} if may_read else set())
    assert listed == ({id_} if reader == "itself" else set())


async def test_two_organizations_with_the_same_channel_ids_never_meet(installation: Installation) -> None:
    ids, orgs = [new_id() for _ in range(2)], [new_id("o") for _ in range(2)]
    channels = [open_channel(installation, channel=id_, org_id=org, team_id="T1") for org in orgs for id_ in ids]
    kept = {channel.key: await told(installation, channel) for channel in channels}
    for channel in channels:
        sibling = [one for one in kept if one.startswith(f"{channel.org_id}/") and one != channel.key]
        rows = await memories_of(installation, channel)
        assert [str(row["id"]) for row in rows] == [kept[channel.key]]
        # What its sibling says is the same text, so that it is given once.
        assert {item.id for item in (await recall(channel)).items} == {kept[channel.key]}
        await change(channel, is_active=False)
        of_its_organization = {kept[channel.key], *(kept[one] for one in sibling)}
        assert {item.id for item in (await recall(channel)).items} <= of_its_organization


@with_model
async def test_both_reads_are_asked_with_one_embedding(apart: CommonSettings) -> None:
    async with embedding_provider() as provider:
        with patch.dict(os.environ, provider.variables):
            chosen = apart.model_copy(update={"embedder": "litellm/openai/text-embedding-3-small"})
            async with run_services(chosen, GATE, WRITER, RECALL) as installation:
                channel = open_channel(installation, team_id="T1")
                other = open_channel(installation, org_id=channel.org_id, team_id="T1")
                await told(installation, channel, OWN)
                await told(installation, other)
                provider.texts.clear()
                reply = await recall(channel, ELSEWHERE)
    assert [item.from_other_channel for item in reply.items][-1]
    assert provider.texts == [ELSEWHERE]


async def test_when_others_cannot_be_read_the_own_notes_are_the_answer(servers: CommonSettings) -> None:
    pool = await create_pool(servers.database_url, "tests", connections_max=1)
    await pool.close()
    request = RecallRequest(channel="C1", query="x")
    limits = Limits(items_max=5, similarity_min=0.65, created_after=datetime(1, 1, 1, tzinfo=UTC))
    assert await OtherChannels(pool, 1.0).find(request, QUESTION, limits, places=5) == []
