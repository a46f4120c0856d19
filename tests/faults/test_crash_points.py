"""The writer is killed at each step of its work, and comes back: nothing lost, nothing doubled."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from uuid import uuid4

import nats
import pytest
import sqlalchemy as sa
from conftest import Installation, ci_run, run_services

from libs.common.bus.streams import WRITER as WRITER_CONSUMER
from libs.common.schema import inbox, memory_items
from libs.common.settings import CommonSettings
from services.gate.app import PROGRAM as GATE
from services.writer.app import PROGRAM as WRITER

LOG = "Error: the crash test found no module 'phoenix'\nnpm ERR! code ELIFECYCLE\n"


async def crash_on(settings: CommonSettings, run: dict[str, object], *arguments: str) -> None:
    """Publishes the run to a writer that dies of it, with a gate beside it."""
    environment = os.environ | {
        "LOREBUS_DATABASE_URL": settings.database_url,
        "LOREBUS_NATS_URL": settings.nats_url,
        "LOREBUS_LEASE_SECONDS": str(settings.lease_seconds),
    }
    async with run_services(settings, GATE) as installation:
        await installation.memory.publish_run(run)
        script = str(Path(__file__).with_name("crashing_writer.py"))
        writer = await asyncio.create_subprocess_exec(sys.executable, script, *arguments, env=environment)
        async with asyncio.timeout(60):
            assert await writer.wait() == -signal.SIGKILL


async def lessons_of(installation: Installation, run: dict[str, object]) -> list[dict[str, object]]:
    return await installation.rows(sa.select(memory_items.c.id).where(memory_items.c.run_id == run["run_id"]))


@pytest.mark.parametrize("point", ["after_claim", "before_commit", "after_commit"])
async def test_a_writer_killed_at_any_step_leaves_one_lesson(
    other_bus: CommonSettings, repository: str, point: str
) -> None:
    run = ci_run(repository, LOG, event_id=str(uuid4()))
    await crash_on(other_bus, run, point)
    async with run_services(other_bus, GATE, WRITER) as installation:
        event = await installation.end_of(str(run["event_id"]), seconds=30)
        assert event.status == "written"
        assert len(await lessons_of(installation, run)) == 1


async def test_the_mutant_that_acknowledges_first_loses_the_event(
    other_bus: CommonSettings, installation: Installation, repository: str
) -> None:
    run = ci_run(repository, LOG, event_id=str(uuid4()))
    await crash_on(other_bus, run, "before_commit", "ack_first")
    client = await nats.connect(other_bus.nats_url)
    consumer = await client.jetstream().consumer_info(WRITER_CONSUMER.stream, WRITER_CONSUMER.name)
    await client.close()
    [row] = await installation.rows(sa.select(inbox.c.status).where(inbox.c.event_id == run["event_id"]))
    assert (consumer.num_pending, consumer.num_ack_pending) == (0, 0), "nothing will ever deliver it again"
    assert row == {"status": "claimed"}
    assert await lessons_of(installation, run) == []
