"""Passive ingestion: what of people's own messages a channel that has opted in remembers."""

import json
from typing import Any

import pytest
import sqlalchemy as sa
from channel_talk import (
    HOSTILE,
    change,
    memories_of,
    memory_with,
    model_of,
    open_channel,
    set_budget,
    tell_messages,
    tell_turn,
    with_model,
)
from chat_completions import Reply
from conftest import Installation, run_services
from lorebus import ChatChannel

from libs.common.schema import bus_erasures, inbox, ingest_windows, model_answers
from libs.common.settings import CommonSettings
from services.gate.app import PROGRAM as GATE
from services.writer.app import PROGRAM as WRITER

FREEZE = "We decided to freeze deploys on Fridays after two pm."
STAGING = "Staging moved to the eu-west-1 region, so update your kubeconfig."
AGAIN = "We decided to freeze the deploys on Fridays after two pm."


def said(ts: str, text: str, user_id: str = "U1", **fields: Any) -> dict[str, Any]:
    return {"ts": ts, "text": text, "user_id": user_id, **fields}


async def opted_in(installation: Installation, **fields: Any) -> ChatChannel:
    channel = open_channel(installation, **fields)
    await change(channel, passive_ingest_enabled=True)
    return channel


async def cursor_of(channel: ChatChannel) -> str | None:
    entry = (await channel.show()).entry
    assert entry is not None
    return entry.ingest_cursor


async def summaries(installation: Installation, channel: ChatChannel) -> list[str]:
    return [row["summary"] for row in await memories_of(installation, channel)]


class TestByRules:
    async def test_facts_are_kept_each_with_its_author(self, installation: Installation) -> None:
        channel = await opted_in(installation)
        event = await tell_messages(
            installation, channel, [said("1.1", FREEZE, "U1"), said("1.2", "lol", "U3"), said("1.3", STAGING, "U2")]
        )
        rows = await memories_of(installation, channel)
        assert [(row["summary"], row["authors"]) for row in rows] == [(FREEZE, ["U1"]), (STAGING, ["U2"])]
        assert {row["origin_tier"] for row in rows} == {0}
        assert {row["metadata"]["source"] for row in rows} == {"passive-ingest"}
        assert list(event.item_ids) == [row["id"] for row in rows]
        fact = await installation.facts("channel_ingested", event_id=event.event_id)
        assert (fact["messages_read"], fact["facts_extracted"], fact["facts_written"]) == (3, 2, 2)
        assert "Fridays" not in json.dumps(fact)

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [(None, "channel_unknown"), ({}, "ingest_disabled"), ({"is_active": False}, "channel_inactive")],
        ids=["unknown", "not-opted-in", "inactive"],
    )
    async def test_nothing_is_read_of_a_channel_that_has_not_opted_in(
        self, installation: Installation, changes: dict[str, Any] | None, reason: str
    ) -> None:
        channel = open_channel(installation)
        if changes is not None:
            await change(channel, **changes)
        event = await tell_messages(installation, channel, [said("1", FREEZE)])
        assert (event.status, event.reason) == ("skipped", reason)
        assert await summaries(installation, channel) == []

    async def test_the_cursor_moves_to_the_newest_seen_and_only_what_is_after_it_is_read(
        self, installation: Installation
    ) -> None:
        channel = await opted_in(installation)
        await tell_messages(installation, channel, [said("9", FREEZE), said("10", "hm", bot=True)])
        assert await cursor_of(channel) == "10"
        await tell_messages(installation, channel, [said("9.5", STAGING), said("10", STAGING)])
        assert (await cursor_of(channel), await summaries(installation, channel)) == ("10", [FREEZE])

    async def test_a_page_of_bots_moves_the_cursor_and_an_empty_one_does_not(self, installation: Installation) -> None:
        channel = await opted_in(installation)
        await tell_messages(installation, channel, [])
        assert await cursor_of(channel) is None
        event = await tell_messages(installation, channel, [said("4", FREEZE, bot=True), said("3", FREEZE, bot=True)])
        assert (event.status, event.reason, await cursor_of(channel)) == ("skipped", "no_facts", "4")

    async def test_what_the_channel_knows_is_not_written_again(self, installation: Installation) -> None:
        channel = await opted_in(installation)
        await tell_messages(installation, channel, [said("1", FREEZE)])
        event = await tell_messages(installation, channel, [said("2", AGAIN), said("3", STAGING), said("4", STAGING)])
        fact = await installation.facts("channel_ingested", event_id=event.event_id)
        assert (fact["facts_extracted"], fact["facts_written"], fact["duplicates"]) == (3, 1, 2)
        assert await summaries(installation, channel) == [FREEZE, STAGING]

    async def test_a_hostile_fact_is_refused_and_the_others_go_on(self, installation: Installation) -> None:
        channel = await opted_in(installation)
        hostile = f"From now on: {HOSTILE.lower()}"
        event = await tell_messages(installation, channel, [said("1", hostile), said("2", STAGING)])
        refused = await installation.facts("channel_write_refused", event_id=event.event_id)
        assert (refused["reason"], refused["security"]) == ("matched", "MEMORY_WRITE_REFUSED")
        assert await summaries(installation, channel) == [STAGING]

    @pytest.mark.parametrize("has_opted_in", [True, False], ids=["read", "unread"])
    async def test_a_page_is_taken_out_of_its_stream_when_it_has_ended(
        self, installation: Installation, *, has_opted_in: bool
    ) -> None:
        channel = await opted_in(installation) if has_opted_in else open_channel(installation)
        event = await tell_messages(installation, channel, [said("1", "just chatting"), said("2", FREEZE)])
        place = sa.select(inbox.c.stream, inbox.c.stream_sequence).filter_by(event_id=event.event_id)
        [message] = await installation.rows(place)
        assert await installation.rows(sa.select(bus_erasures.c.requested_at).filter_by(**message))

    async def test_nothing_is_left_of_the_work_when_the_page_has_ended(self, installation: Installation) -> None:
        channel = await opted_in(installation)
        event = await tell_messages(installation, channel, [said("1", FREEZE)])
        windows = sa.select(ingest_windows).filter_by(event_id=f"memory.write:{event.event_id}")
        assert await installation.rows(windows) == []


@with_model
class TestByModel:
    FACTS = json.dumps(
        {
            "facts": [
                {"summary": "Deploys are frozen on Fridays after 14:00.", "rationale": "Decided.", "messages": [1, 2]},
                {"summary": "Staging is in eu-west-1.", "rationale": "Told.", "messages": [3]},
            ]
        }
    )
    PAGE = (said("1", "freeze fridays?", "U1"), said("2", "yes, after 14", "U2"), said("3", STAGING, "U3"))

    async def test_the_models_facts_are_attributed_to_whose_messages_they_rest_on(
        self, other_bus: CommonSettings
    ) -> None:
        async with memory_with(other_bus, Reply(self.FACTS)) as (installation, provider):
            channel = await opted_in(installation)
            event = await tell_messages(installation, channel, self.PAGE)
            rows = await memories_of(installation, channel)
            fact = await installation.facts("channel_ingested", event_id=event.event_id)
        assert [row["authors"] for row in rows] == [["U1", "U2"], ["U3"]]
        assert (fact["written_by"], fact["facts_written"], len(provider.requests)) == ("model", 2, 1)

    async def test_a_model_that_fails_finds_nothing_and_the_cursor_has_moved(self, other_bus: CommonSettings) -> None:
        async with memory_with(other_bus, Reply("no")) as (installation, _):
            channel = await opted_in(installation)
            event = await tell_messages(installation, channel, self.PAGE)
            assert await cursor_of(channel) == "3"
        assert (event.status, event.reason) == ("skipped", "no_facts")

    async def test_over_budget_the_cursor_stays(self, other_bus: CommonSettings) -> None:
        words = Reply(json.dumps({"summary": "Rollbacks of payments take four minutes.", "rationale": "r"}))
        async with memory_with(other_bus, words) as (installation, _):
            channel = await opted_in(installation)
            await set_budget(installation, channel, 0.001)
            await tell_turn(installation, channel)
            event = await tell_messages(installation, channel, self.PAGE)
            assert await cursor_of(channel) is None
        assert (event.status, event.reason) == ("refused", "over_budget")

    async def test_a_page_whose_service_died_is_read_again_and_paid_for_once(self, apart: CommonSettings) -> None:
        async with model_of(apart, Reply(self.FACTS)) as (chosen, provider):
            async with run_services(chosen, WRITER) as without_gate:
                channel = await opted_in(without_gate)
                told = await channel.tell_messages(self.PAGE)
                await without_gate.until(sa.select(model_answers))
                moved = await cursor_of(channel)
            async with run_services(chosen, GATE, WRITER) as installation:
                event = await installation.end_of(told.event_id)
        assert (moved, event.status, len(event.item_ids), len(provider.requests)) == ("3", "written", 2, 1)
