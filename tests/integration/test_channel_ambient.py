"""Ambient passes: digest, consolidation, ingestion, flagging; each counts once, and none stops another."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from channel_talk import (
    change,
    id_of,
    memory_with,
    new_id,
    open_channel,
    set_budget,
    tell_turn,
    with_model,
)
from chat_completions import Reply
from conftest import Installation, run_services
from lorebus import ChatChannel

from libs.common.settings import CommonSettings
from services.consolidator.app import PROGRAM as CONSOLIDATOR

OURS = "The ledger worker of payments needs a restart after each rollback of the payments service."
NEWS = "The ledger worker of payments is restarted by itself after each rollback of payments from now on."
ELSE = "Plum jam is cooked in the canteen each September by everybody who has time to help."
FREEZE = {"ts": "7", "user_id": "U5", "text": "We decided to freeze deploys on Fridays after two pm."}


@pytest.fixture(scope="module")
async def memory(servers: CommonSettings, installation: Installation) -> AsyncIterator[Installation]:
    async with run_services(servers, CONSOLIDATOR) as running:
        yield running


async def ambient(installation: Installation, channel: ChatChannel, messages: Any = ()) -> dict[str, Any]:
    """What a pass did, and what its look at the organization came to."""
    published = await channel.request_ambient(messages)
    event = await installation.end_of(published.event_id)
    assert event.status == "written", event
    done = await installation.facts("channel_ambient", event_id=published.event_id)
    return {**done, "flagged": await installation.facts("channel_flagged", event_id=published.event_id)}


async def told(installation: Installation, channel: ChatChannel, reply: str, **fields: Any) -> str:
    return str(id_of(await tell_turn(installation, channel, reply=reply, text="", **fields)))


async def flagging(installation: Installation, **fields: Any) -> tuple[ChatChannel, str]:
    """A channel that has opted in and knows something."""
    channel = open_channel(installation, **fields)
    await change(channel, org_flagging_enabled=True)
    return channel, await told(installation, channel, OURS)


class TestPass:
    async def test_its_parts_are_done_in_one_go(self, memory: Installation) -> None:
        channel = open_channel(memory)
        await change(channel, passive_ingest_enabled=True)
        ids = [await told(memory, channel, text) for text in (OURS, ELSE)]
        done = await ambient(memory, channel, [FREEZE])
        merged = await memory.facts("channel_consolidated", event_id=done["consolidation_event_id"])
        read = await memory.facts("channel_ingested", event_id=done["ingest_event_id"])
        assert done["digest"] == ids[::-1]
        assert (merged["channel"], read["facts_written"]) == (channel.key, 1)
        assert done["flagged"]["reason"] == "disabled"
        assert "ledger" not in json.dumps(done)

    async def test_what_the_channel_has_opted_out_of_is_left(self, memory: Installation) -> None:
        channel = open_channel(memory)
        await change(channel, consolidation_enabled=False)
        done = await ambient(memory, channel)
        assert (done["digest"], done["consolidation_event_id"], done["ingest_event_id"]) == ([], None, None)

    @pytest.mark.parametrize(
        ("changes", "reason"), [(None, "channel_unknown"), ({"is_active": False}, "channel_inactive")]
    )
    async def test_nothing_is_done_for_a_channel_that_is_unknown_or_inactive(
        self, memory: Installation, changes: dict[str, Any] | None, reason: str
    ) -> None:
        channel = open_channel(memory)
        if changes is not None:
            await change(channel, **changes)
        event = await memory.end_of((await channel.request_ambient([FREEZE])).event_id)
        assert (event.status, event.reason) == ("skipped", reason)


class TestFlagging:
    async def test_notes_of_other_teams_of_the_organization_are_named_and_their_words_given_on_asking(
        self, memory: Installation
    ) -> None:
        channel, _ = await flagging(memory, team_id="T1")
        other = open_channel(memory, org_id=channel.org_id, team_id="T2")
        id_ = await told(memory, other, NEWS)
        await told(memory, other, ELSE)
        flagged = (await ambient(memory, channel))["flagged"]
        assert (flagged["reason"], flagged["ids"], flagged["candidates"]) == ("posted", [id_], 1)
        reply = await channel.flagged(flagged["ids"])
        assert [(note.id, note.channel, note.summary) for note in reply.notes] == [(id_, other.key, NEWS)]
        assert "from another channel" in reply.block

    @pytest.mark.parametrize(
        "source",
        [{"is_private": True}, {"is_active": False}, {"elsewhere": True}],
        ids=["private", "inactive", "another-organization"],
    )
    async def test_a_channel_that_may_not_be_read_is_no_source(
        self, memory: Installation, source: dict[str, Any]
    ) -> None:
        channel, _ = await flagging(memory)
        org_id = new_id("o") if source.get("elsewhere") else channel.org_id
        other = open_channel(memory, org_id=org_id)
        id_ = await told(memory, other, NEWS)
        await change(other, **{name: value for name, value in source.items() if name != "elsewhere"})
        assert (await ambient(memory, channel))["flagged"]["reason"] == "no-signals"
        assert (await channel.flagged([id_])).notes == []

    async def test_a_look_starts_the_cooldown_whatever_it_finds(self, memory: Installation) -> None:
        channel, _ = await flagging(memory)
        reasons = [(await ambient(memory, channel))["flagged"]["reason"] for _ in range(2)]
        assert reasons == ["no-signals", "cooldown"]

    async def test_a_channel_without_notes_has_no_interests(self, memory: Installation) -> None:
        channel = open_channel(memory)
        await change(channel, org_flagging_enabled=True)
        assert (await ambient(memory, channel))["flagged"]["reason"] == "no-interest"

    async def test_who_has_not_opted_in_is_given_no_words(self, memory: Installation) -> None:
        channel = open_channel(memory)
        other = open_channel(memory, org_id=channel.org_id)
        id_ = await told(memory, other, NEWS)
        await change(channel)
        assert (await channel.flagged([id_])).error == "unknown"


@with_model
class TestByModel:
    WORDS = json.dumps({"summary": OURS, "rationale": "r"})
    NEWS_WORDS = json.dumps({"summary": NEWS, "rationale": "r"})

    async def both(self, installation: Installation) -> tuple[ChatChannel, str]:
        channel, _ = await flagging(installation)
        other = open_channel(installation, org_id=channel.org_id)
        return channel, await told(installation, other, NEWS)

    @pytest.mark.parametrize(
        ("answer", "reason"),
        [('{"notes": [1]}', "posted"), ('{"notes": []}', "skip"), ('{"notes": [9]}', "skip"), ("no", "error")],
    )
    async def test_the_model_says_what_is_worth_hearing(
        self, other_bus: CommonSettings, answer: str, reason: str
    ) -> None:
        script = [Reply(self.WORDS), Reply(self.NEWS_WORDS), Reply(answer)]
        async with memory_with(other_bus, *script) as (installation, _):
            channel, id_ = await self.both(installation)
            flagged = (await ambient(installation, channel))["flagged"]
        assert (flagged["reason"], flagged["ids"]) == (reason, [id_] if reason == "posted" else [])

    async def test_over_budget_is_a_reason_and_no_look(self, other_bus: CommonSettings) -> None:
        async with memory_with(other_bus, Reply(self.WORDS)) as (installation, provider):
            channel, _ = await flagging(installation)
            await set_budget(installation, channel, 0.001)
            flagged = (await ambient(installation, channel))["flagged"]
            shown = (await channel.show()).entry
        assert (flagged["reason"], len(provider.requests)) == ("over-budget", 1)
        assert shown is not None
        assert shown.flagged_at is None
