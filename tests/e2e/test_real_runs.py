"""142 real runs through the running services: what becomes of them, and whether their lessons are found again."""

import asyncio
import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from conftest import Installation
from lorebus import Lorebus, RecallReply

from libs.common.schema import inbox, memory_items

TENANT = "real-runs"
ASKED_AT_ONCE = 4

FOUND_MIN = {"paraphrase": 0.68, "ci_fixer": 0.88}
"""Share of the queries whose right lesson is among the items."""
SILENT_MIN = {"paraphrase": 0.85, "ci_fixer": 0.75}
"""Share of the same queries that get nothing in two other repositories."""


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
def runs(shared: Path) -> list[dict[str, Any]]:
    files = sorted((shared / "real-runs/runs").glob("*.json"))
    return [json.loads(file.read_text()) | {"transcripts": []} for file in files]


@pytest.fixture(scope="module")
async def memory(installation: Installation, runs: list[dict[str, Any]]) -> Any:
    async with Lorebus(installation.settings.nats_url, tenant=TENANT) as client:
        assert await client.wait_connected(5)
        await publish_all(installation, client, runs)
        yield client


async def publish_all(installation: Installation, client: Lorebus, runs: list[dict[str, Any]]) -> None:
    """One after the other, as files come; then waits for the end of all."""
    for run in runs:
        await client.publish_run(run)
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
    installation: Installation, memory: Lorebus, runs: list[dict[str, Any]]
) -> None:
    before = [await rows_of(installation, table) for table in (inbox, memory_items)]
    await publish_all(installation, memory, runs)
    assert [await rows_of(installation, table) for table in (inbox, memory_items)] == before


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
    silent: dict[str, list[bool]] = defaultdict(list)

    async def ask(repository: str, query: str) -> RecallReply:
        async with slots:
            reply = await memory.recall(query, repository=repository, deadline_seconds=20)
        assert not reply.degraded, reply.reason
        assert {home_of[item.run_id] for item in reply.items} <= {repository}, "no item from another repository"
        return reply

    async def judge(asked: Asked) -> None:
        replies = [await ask(repository, asked.query) for repository in asked.repositories]
        found[asked.agent].append(any(item.run_id in asked.run_ids for reply in replies for item in reply.items))
        for other in two_others(asked, repositories):
            silent[asked.agent].append(not (await ask(other, asked.query)).items)

    await asyncio.gather(*(judge(asked) for asked in build_questions(labels)))
    shares = {agent: (sum(hits) / len(hits), sum(silent[agent]) / len(silent[agent])) for agent, hits in found.items()}
    record_property("found_and_silent", shares)
    for agent, found_min in FOUND_MIN.items():
        assert shares[agent][0] >= found_min, shares
        assert shares[agent][1] >= SILENT_MIN[agent], shares
