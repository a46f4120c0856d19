"""What administrators change of a channel's memory, and what is forgotten of it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from channel_talk import HOSTILE, QUESTION, change, id_of, memories_of, open_channel, tell_messages, tell_turn
from conftest import Installation, dump_database, run_services
from lorebus import ChatChannel

from libs.common.schema import audit, gate_verdicts
from libs.common.settings import CommonSettings
from services.consolidator.app import PROGRAM as CONSOLIDATOR
from services.writer.app import PROGRAM as WRITER

TOKEN = "ghp_hB7xQ2mZ9kR4tW8vY3nL6pJ1cF5sD0gA"
OLD = "The zeppelin hangar of the payments team is cleaned on Mondays by the facility people."
NEW = "Plum jam is cooked in the canteen each September, and everybody may take a jar of it home."


@pytest.fixture(scope="module")
async def memory(servers: CommonSettings, installation: Installation) -> AsyncIterator[Installation]:
    """The session's services and a consolidator, which forgets."""
    async with run_services(servers, CONSOLIDATOR) as running:
        yield running


async def told(installation: Installation, reply: str = OLD) -> tuple[ChatChannel, str]:
    channel = open_channel(installation)
    return channel, str(id_of(await tell_turn(installation, channel, reply=reply, text="")))


async def found(channel: ChatChannel, query: str) -> list[str]:
    reply = await channel.recall(query, deadline_seconds=5)
    assert not reply.degraded
    return [item.summary for item in reply.items]


async def edits_of(installation: Installation, id_: str) -> list[dict[str, Any]]:
    query = sa.select(audit.c.actor, audit.c.before, audit.c.after).filter_by(action="memory.edit", entity_id=id_)
    return await installation.rows(query)


class TestEditing:
    async def test_an_edited_memory_is_found_by_its_new_words_alone(self, installation: Installation) -> None:
        channel, id_ = await told(installation)
        reply = await channel.edit(id_, actor="admin", summary=NEW, rationale="The cook said so.")
        assert (reply.id, reply.error) == (id_, None)
        assert await found(channel, "when is plum jam cooked in the canteen?") == [NEW]
        assert await found(channel, "who cleans the zeppelin hangar?") == []
        [row] = await memories_of(installation, channel)
        assert (row["summary"], row["rationale"], row["authors"]) == (NEW, "The cook said so.", ["U1"])

    async def test_an_edit_is_audited_with_the_words_before_and_after(self, installation: Installation) -> None:
        channel, id_ = await told(installation)
        await channel.edit(id_, actor="admin", summary=NEW)
        assert await edits_of(installation, id_) == [
            {
                "actor": "admin",
                "before": {"summary": OLD, "rationale": ""},
                "after": {"summary": NEW, "rationale": ""},
            }
        ]

    async def test_what_the_gate_refuses_changes_nothing(self, installation: Installation) -> None:
        channel, id_ = await told(installation)
        reply = await channel.edit(id_, actor="admin", rationale=HOSTILE)
        assert (reply.error, bool(reply.patterns)) == ("matched", True)
        assert "deployment key" not in reply.model_dump_json()
        [row] = await memories_of(installation, channel)
        assert (row["summary"], row["rationale"], await edits_of(installation, id_)) == (OLD, "", [])

    async def test_an_edit_is_masked_and_cut(self, installation: Installation) -> None:
        channel, id_ = await told(installation)
        await channel.edit(id_, actor="admin", summary=f"Use {TOKEN}. {NEW * 9}")
        [row] = await memories_of(installation, channel)
        assert TOKEN not in str([row, *await edits_of(installation, id_)])
        assert len(row["summary"]) == 500

    async def test_only_an_active_memory_of_this_very_channel_is_edited(self, installation: Installation) -> None:
        channel, id_ = await told(installation)
        other = open_channel(installation, org_id=channel.org_id)
        same_id_elsewhere = open_channel(installation, channel=channel.channel)
        for wrong in (other, same_id_elsewhere):
            assert (await wrong.edit(id_, actor="admin", summary=NEW)).error == "unknown"
        assert (await channel.edit(uuid4(), actor="admin", summary=NEW)).error == "unknown"
        assert (await channel.edit(id_, actor="admin")).error == "invalid_request"

    async def test_of_two_edits_at_once_one_counts_whole(self, installation: Installation) -> None:
        channel, id_ = await told(installation)
        texts = [f"{NEW} {word}" for word in ("Twice.", "Thrice.")]
        replies = await asyncio.gather(*(channel.edit(id_, actor="admin", summary=text) for text in texts))
        [row] = await memories_of(installation, channel)
        assert row["summary"] in texts
        assert None in [reply.error for reply in replies]
        assert len(await edits_of(installation, id_)) == [reply.error for reply in replies].count(None)

    async def test_no_verdict_on_the_old_words_is_left(self, installation: Installation) -> None:
        channel, id_ = await told(installation, f"{OLD} {uuid4()}")
        [row] = await memories_of(installation, channel)
        await channel.edit(id_, actor="admin", summary=NEW)
        query = sa.select(gate_verdicts).filter_by(text_sha256=row["text_sha256"])
        assert await installation.rows(query) == []


class TestForgetting:
    async def forget(self, memory: Installation, **command: Any) -> dict[str, Any]:
        published = await memory.memory.forget(actor="admin", **command)
        return await memory.facts("deleted", event_id=published.event_id)

    async def test_a_forgotten_memory_leaves_no_word_of_its_edits_either(self, memory: Installation) -> None:
        marks = [f"quince{uuid4().hex[:12]}", f"medlar{uuid4().hex[:12]}"]
        channel, id_ = await told(memory, f"{OLD} {marks[0]}")
        await channel.edit(id_, actor="admin", summary=f"{NEW} {marks[1]}")
        fact = await self.forget(memory, ids=[id_])
        dump = await dump_database(memory.engine)
        assert fact["deleted"] == [id_]
        assert await memories_of(memory, channel) == []
        assert [mark for mark in marks if mark in dump] == []

    async def test_erasing_a_person_reaches_turns_and_facts_in_every_channel_and_nobody_elses(
        self, memory: Installation
    ) -> None:
        erased, other = f"U{uuid4().hex[:8]}", f"U{uuid4().hex[:8]}"
        channels = [open_channel(memory), open_channel(memory)]
        kept = []
        for channel in channels:
            await change(channel, passive_ingest_enabled=True)
            await tell_turn(memory, channel, user_id=erased)
            kept.append(id_of(await tell_turn(memory, channel, user_id=other, reply=NEW, text=QUESTION)))
            said = [
                {"ts": "1", "user_id": erased, "text": "We decided to freeze deploys on Fridays after two pm."},
                {"ts": "2", "user_id": other, "text": "Staging moved to the eu-west-1 region of the other provider."},
            ]
            kept.append((await tell_messages(memory, channel, said)).item_ids[1])
        fact = await self.forget(memory, person=erased)
        left = [row["id"] for channel in channels for row in await memories_of(memory, channel)]
        assert len(fact["deleted"]) == 4
        assert sorted(left) == sorted(kept)


async def test_without_a_gate_nothing_is_edited(other_bus: CommonSettings, installation: Installation) -> None:
    channel, id_ = await told(installation)
    async with run_services(other_bus, WRITER) as without_gate:
        alone = without_gate.memory.channel(channel.channel, org_id=channel.org_id)
        assert (await alone.edit(id_, actor="admin", summary=NEW)).error == "gate"
    [row] = await memories_of(installation, channel)
    assert row["summary"] == OLD
