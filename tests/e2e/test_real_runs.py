"""142 real runs through the running services: what becomes of them, and whether their lessons are found again."""

import asyncio
import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import sqlalchemy as sa
from conftest import Installation
from lorebus import Lorebus, RecallReply

from cli.run_files import RunFile, read_run_file
from libs.common.schema import inbox, memory_items
from services.writer.wording.lesson import RATIONALE_CHARS_MAX, SUMMARY_CHARS_MAX

TENANT = "real-runs"
ASKED_AT_ONCE = 4

SHARES_MIN = {
    "paraphrase": (0.82, 0.77, 0.85),
    "ci_fixer": (0.95, 0.89, 0.78),
    "implementer": (0.72, 0.66, 0.90),
    "review_fixer": (0.79, 0.75, 0.88),
}
"""Share of the queries whose right lesson is among the items, is the first one, and that get nothing elsewhere."""


@dataclass(frozen=True)
class Asked:
    agent: str
    query: str
    repositories: tuple[str, ...]
    run_ids: frozenset[str]


@pytest.fixture(scope="module")
def labels(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "real-runs/labels.json").read_text())


@pytest.fixture(scope="module")
def runs(shared: Path) -> list[RunFile]:
    return [read_run_file(path) for path in sorted((shared / "real-runs/runs").glob("*.json"))]


@pytest.fixture(scope="module")
async def memory(installation: Installation, runs: list[RunFile]) -> Any:
    async with Lorebus(installation.settings.nats_url, tenant=TENANT) as client:
        assert await client.wait_connected(5)
        await publish_all(installation, client, runs)
        yield client


async def publish_all(installation: Installation, client: Lorebus, runs: list[RunFile]) -> None:
    """One after the other with their transcripts, as files come; then waits for the end of all."""
    for one in runs:
        published = await client.publish_run(one.run, transcripts=one.transcripts)
        assert (one.left_out, published.left_out) == ((), ())
    ended = sa.select(sa.func.count()).where(inbox.c.tenant == TENANT, inbox.c.terminal_at.is_not(None))
    await installation.until(sa.select(sa.literal(1)).where(ended.scalar_subquery() == len(runs)), seconds=120)


async def rows_of(installation: Installation, table: sa.Table) -> list[dict[str, Any]]:
    return await installation.rows(sa.select(table).where(table.c.tenant == TENANT).order_by(*table.primary_key))


async def test_exactly_the_runs_without_a_lesson_are_skipped(
    installation: Installation, memory: Lorebus, labels: dict[str, Any]
) -> None:
    events = await rows_of(installation, inbox)
    skipped = {event["run_id"] for event in events if event["status"] == "skipped"}
    written = {event["run_id"] for event in events if event["status"] == "written"}
    assert skipped == {run_id for run_id, label in labels["runs"].items() if not label["expect_lesson"]}
    assert written == {run_id for run_id, label in labels["runs"].items() if label["expect_lesson"]}


async def test_publishing_all_again_changes_no_row(
    installation: Installation, memory: Lorebus, runs: list[RunFile]
) -> None:
    before = [await rows_of(installation, table) for table in (inbox, memory_items)]
    await publish_all(installation, memory, runs)
    assert [await rows_of(installation, table) for table in (inbox, memory_items)] == before


async def test_every_lesson_of_a_run_with_a_transcript_rests_on_a_digest(
    installation: Installation, memory: Lorebus, runs: list[RunFile]
) -> None:
    items = {item["run_id"]: item for item in await rows_of(installation, memory_items)}
    cited = {run_id for run_id, item in items.items() if "transcripts" in item["metadata"]["evidence"]}
    assert cited == {one.run.run_id for one in runs if one.transcripts and one.run.run_id in items}


async def test_lessons_stay_within_their_caps(installation: Installation, memory: Lorebus) -> None:
    for item in await rows_of(installation, memory_items):
        assert len(item["summary"]) <= SUMMARY_CHARS_MAX
        assert len(item["rationale"]) <= RATIONALE_CHARS_MAX


def build_questions(labels: dict[str, Any]) -> list[Asked]:
    return [
        Asked(agent, query, tuple(cause["repositories"]), frozenset(cause["runs"]))
        for cause in labels["root_causes"].values()
        for agent, query in (
            *(("paraphrase", query) for query in cause.get("queries", [])),
            *((asked["agent"], asked["query"]) for asked in cause.get("caller_queries", [])),
        )
    ]


def two_others(asked: Asked, repositories: list[str]) -> list[str]:
    """Two other repositories, the same ones every time."""
    others = [name for name in repositories if name not in asked.repositories]
    return sorted(others, key=lambda name: hashlib.sha256(f"{asked.query}{name}".encode()).digest())[:2]


async def test_the_right_lesson_is_found_and_other_repositories_stay_silent(
    installation: Installation, memory: Lorebus, labels: dict[str, Any], record_property: Any
) -> None:
    repositories = sorted({label["repository"] for label in labels["runs"].values()})
    home_of = {run_id: label["repository"] for run_id, label in labels["runs"].items()}
    slots = asyncio.Semaphore(ASKED_AT_ONCE)
    found: dict[str, list[bool]] = defaultdict(list)
    first: dict[str, list[bool]] = defaultdict(list)
    silent: dict[str, list[bool]] = defaultdict(list)

    async def ask(repository: str, asked: Asked) -> RecallReply:
        agent = None if asked.agent == "paraphrase" else asked.agent
        async with slots:
            reply = await memory.recall(asked.query, repository=repository, agent=agent, deadline_seconds=20)
        assert not reply.degraded, reply.reason
        assert {home_of[item.run_id] for item in reply.items} <= {repository}, "no item from another repository"
        return reply

    async def judge(asked: Asked) -> None:
        replies = [await ask(repository, asked) for repository in asked.repositories]
        found[asked.agent].append(any(item.run_id in asked.run_ids for reply in replies for item in reply.items))
        first[asked.agent].append(any(item.run_id in asked.run_ids for reply in replies for item in reply.items[:1]))
        for other in two_others(asked, repositories):
            silent[asked.agent].append(not (await ask(other, asked)).items)

    await asyncio.gather(*(judge(asked) for asked in build_questions(labels)))
    shares = {agent: tuple(fmean(hits[agent]) for hits in (found, first, silent)) for agent in SHARES_MIN}
    record_property("in_the_items_first_silent", shares)
    for agent, bars in SHARES_MIN.items():
        assert all(share >= bar for share, bar in zip(shares[agent], bars, strict=True)), shares
