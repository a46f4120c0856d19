"""Stored memories under a pattern set that came later: judged again in the background, on the real gate."""

import asyncio
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa
from conftest import Installation, run_services
from watched_gate import add_pattern

from libs.common.bus.connection import connect, create_broker
from libs.common.gate_client import GateClient
from libs.common.schema import gate_findings, gate_patterns, gate_verdicts, memory_items, outbox
from libs.common.settings import CommonSettings
from services.gate.app import PROGRAM as GATE
from services.recall.app import PROGRAM as RECALL
from services.writer.app import PROGRAM as WRITER
from services.writer.rescreening import Rescreening
from services.writer.settings import WriterSettings
from services.writer.stale_rows import StaleRows

PLAIN = "The build of the parser fails without the compiler cache of the runner."
LATER = "Ask the strlcpy oracle for the right buffer size."
LATER_WHY = "The release step signs its archive with the key of the bot."


async def store_some(settings: CommonSettings, repository: str) -> tuple[dict[str, UUID], str]:
    """Three memories, a plain one, and two with the word in summary or rationale; and the set that cleared them."""
    notes = {"plain": (PLAIN, ""), "summary": (LATER, ""), "rationale": (LATER_WHY, "Told by strlcpy.")}
    async with run_services(settings, GATE, WRITER) as installation:
        ids: dict[str, UUID] = {}
        for name, (summary, rationale) in notes.items():
            note = {"repository": repository, "writer": "bot", "summary": summary, "rationale": rationale}
            reply = await installation.memory.save_note(**note, deadline_seconds=10)
            ids[name] = UUID(str(reply.id))
        [pattern_set] = {*(await pattern_sets(installation)).values()}
    return ids, pattern_set


def rescreening_often(settings: CommonSettings) -> WriterSettings:
    return WriterSettings(**settings.model_dump(exclude_unset=True), writer_rescreen_seconds=0.1)


async def pattern_sets(installation: Installation) -> dict[UUID, str]:
    rows = await installation.rows(sa.select(memory_items.c.id, memory_items.c.pattern_set))
    return {row["id"]: row["pattern_set"] for row in rows}


async def findings(installation: Installation) -> dict[UUID, dict[str, Any]]:
    return {row["item_id"]: row for row in await installation.rows(sa.select(gate_findings))}


async def until_judged(installation: Installation, ids: dict[str, UUID], before: str) -> None:
    """Every row was cleared by another set than `before`, or found to match it."""
    async with asyncio.timeout(20):
        while True:
            sets, found = await pattern_sets(installation), await findings(installation)
            if all(sets[id_] != before or id_ in found for id_ in ids.values()):
                return
            await asyncio.sleep(0.05)


async def test_rows_move_on_to_the_set_in_force_or_are_found_to_match_it(
    apart: CommonSettings, repository: str
) -> None:
    ids, before = await store_some(apart, repository)
    await add_pattern(apart, "strlcpy")
    async with run_services(rescreening_often(apart), GATE, WRITER, RECALL) as installation:
        await until_judged(installation, ids, before)
        sets, found = await pattern_sets(installation), await findings(installation)
        recalled = await installation.recall(repository, f"{PLAIN} {LATER} {LATER_WHY}", similarity_min=0)
        verdicts = await installation.rows(sa.select(gate_verdicts).filter_by(pattern_set=sets[ids["plain"]]))
    assert set(found) == {ids["summary"], ids["rationale"]}
    assert {tuple(row["patterns"]) for row in found.values()} == {("test.strlcpy",)}
    assert {row["pattern_set"] for row in found.values()} == {sets[ids["plain"]]} != {before}
    assert sets[ids["summary"]] == sets[ids["rationale"]] == before
    assert [row["verdict"] for row in verdicts] == ["clean"]
    assert ([item.id for item in recalled.items], recalled.dropped) == ([str(ids["plain"])], 2)


async def test_a_row_that_a_later_set_clears_is_recalled_again_and_waits_no_more(
    apart: CommonSettings, repository: str
) -> None:
    ids, before = await store_some(apart, repository)
    await add_pattern(apart, "strlcpy")
    async with run_services(rescreening_often(apart), GATE, WRITER) as installation:
        await until_judged(installation, ids, before)
        assert len(await findings(installation)) == 2
        async with installation.engine.begin() as connection:
            gone = sa.update(gate_patterns).filter_by(label="test.strlcpy").values(is_active=False)
            await connection.execute(gone)
    async with run_services(rescreening_often(apart), GATE, WRITER, RECALL) as installation:
        async with asyncio.timeout(20):
            while await findings(installation):  # noqa: ASYNC110 - rows tell nobody that they changed
                await asyncio.sleep(0.05)
        recalled = await installation.recall(repository, LATER, similarity_min=0)
        assert {*(await pattern_sets(installation)).values()} == {before}
    assert {item.id for item in recalled.items} == {str(id_) for id_ in ids.values()}


async def test_the_sweep_tells_the_taps_of_no_drop(apart: CommonSettings, repository: str) -> None:
    ids, before = await store_some(apart, repository)
    await add_pattern(apart, "strlcpy")
    async with run_services(rescreening_often(apart), GATE, WRITER) as installation:
        await until_judged(installation, ids, before)
        waiting = await installation.rows(
            sa.select(outbox.c.subject).where(outbox.c.subject.contains("recall_dropped"))
        )
        with pytest.raises(TimeoutError):
            await installation.facts("recall_dropped", seconds=0.5)
    assert waiting == []


async def test_without_a_gate_rows_stay_and_the_writer_lives_until_it_is_back(
    apart: CommonSettings, repository: str, caplog: pytest.LogCaptureFixture
) -> None:
    ids, before = await store_some(apart, repository)
    await add_pattern(apart, "strlcpy")
    async with run_services(rescreening_often(apart), WRITER) as installation:
        async with asyncio.timeout(10):
            while caplog.text.count("writer.rescreening_paused") < 2:  # noqa: ASYNC110 - a log tells nobody
                await asyncio.sleep(0.02)
        assert await findings(installation) == {}
        async with run_services(apart, GATE):
            await until_judged(installation, ids, before)
            assert set(await findings(installation)) == {ids["summary"], ids["rationale"]}


async def test_a_sweep_goes_over_more_rows_than_a_batch_holds_and_then_rests(
    apart: CommonSettings, repository: str
) -> None:
    ids, before = await store_some(apart, repository)
    async with run_services(apart, GATE) as installation:
        async with installation.engine.begin() as connection:
            await connection.execute(sa.text(MANY), {"template": str(ids["plain"]), "count": 250})
        broker = create_broker(apart.nats_url, "tests")
        gate = GateClient(await connect(broker, apart.nats_url), 2.0)
        rows = StaleRows(installation.engine)
        assert await rows.find_ids(before, 1_000) == []
        async with installation.engine.begin() as connection:
            await connection.execute(sa.text(AGE))
        await Rescreening(rows, gate, 60).sweep()
        assert await rows.find_ids(before, 1_000) == []
        assert {*(await pattern_sets(installation)).values()} == {before}
        await broker.stop()


MANY = """
insert into memory_items (id, tenant, scope_id, summary, rationale, origin_tier, source_event_id, text_sha256,
                          pattern_set, evidence_at)
select gen_random_uuid(), tenant, scope_id, summary, rationale, origin_tier, 'many-' || n, text_sha256, pattern_set,
       evidence_at
from memory_items, generate_series(1, :count) n where id = cast(:template as uuid)
"""
AGE = """
with older as (
    insert into gate_verdicts (tenant, text_sha256, pattern_set, verdict)
    select distinct tenant, text_sha256, 'an-older-set', 'clean' from memory_items returning pattern_set
)
update memory_items set pattern_set = (select pattern_set from older limit 1)
"""
