"""Embedding all memories with another model, while services write and recall."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from conftest import Installation, ci_run, run_services
from embeddings import MODEL, EmbeddingProvider, embedding_provider
from stored_rows import store_rows
from watched_gate import add_pattern

from libs.common.administered_settings import AdministeredSettings
from libs.common.embedding.models import ServingModel
from libs.common.embedding.serving import hold_serving, open_models
from libs.common.errors import ModelReplaced
from libs.common.schema import (
    audit,
    embedding_models,
    inbox,
    memory_items,
    memory_vectors,
    reembed_jobs,
    reembed_passed,
)
from libs.common.settings import CommonSettings
from libs.common.vectors import MEMORY
from services.gate.app import PROGRAM as GATE
from services.recall.app import PROGRAM as RECALL
from services.reembedder.administration import ReembedAdministration, ReembedRefusal
from services.reembedder.app import PROGRAM as REEMBEDDER
from services.reembedder.rows import Batch
from services.reembedder.store import JobLost, JobStore
from services.reembedder.sweeping import Sweeping
from services.writer.app import PROGRAM as WRITER

pytestmark = pytest.mark.filterwarnings("ignore")

OLD, NEW = "hashing/blake2b-384", "wordllama/l2_supercat_256"
ALL = (GATE, WRITER, RECALL, REEMBEDDER)
PATIENCE_SECONDS = 120
"""Importing LiteLLM takes seconds, on a busy machine many."""
LOG = "Error: cannot find module '{word}'\nnpm ERR! code ELIFECYCLE\n"


@pytest.fixture
def settings(apart: CommonSettings) -> CommonSettings:
    return apart.model_copy(update={"embedder": "hashing", "settings_cache_seconds": 0.0})


@pytest.fixture
async def provider(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddingProvider]:
    async with embedding_provider() as provider:
        for name, value in provider.variables.items():
            monkeypatch.setenv(name, value)
        yield provider


@asynccontextmanager
async def filled(settings: CommonSettings, repository: str, count: int, *programs: Any) -> AsyncIterator[Installation]:
    """Services with so many memories of the old model, which the gate's set in force has not cleared."""
    async with run_services(settings, *programs) as installation:
        model = (await open_models(installation.engine, settings)).serving
        await store_rows(installation.engine, model, repository, texts(count))
        yield installation


def texts(count: int) -> list[str]:
    return [f"The build number{n} fails without the tool{n} of the runner{n}." for n in range(count)]


async def ask(installation: Installation, model: str = NEW, **fields: Any) -> str:
    published = await installation.memory.change_embedding(**{"model": model, "reembed": True} | fields)
    return published.event_id


async def settled(installation: Installation, event_id: str) -> tuple[str, str | None]:
    event = await installation.end_of(event_id, PATIENCE_SECONDS)
    return event.status, event.reason


async def job_until(installation: Installation, seconds: float = PATIENCE_SECONDS, **is_: object) -> dict[str, Any]:
    query = sa.select(reembed_jobs).filter_by(**is_).order_by(reembed_jobs.c.id.desc())
    return (await installation.until(query, seconds))[0]


async def models(installation: Installation) -> dict[str, str]:
    rows = await installation.rows(sa.select(embedding_models.c.name, embedding_models.c.state))
    return {row["name"]: row["state"] for row in rows}


async def embedded_by(installation: Installation) -> dict[str, int]:
    query = (
        sa.select(embedding_models.c.name, sa.func.count().label("rows"))
        .join(memory_vectors, memory_vectors.c.model_id == embedding_models.c.id)
        .group_by(embedding_models.c.name)
    )
    return {row["name"]: row["rows"] for row in await installation.rows(query)}


def desk(installation: Installation) -> ReembedAdministration:
    return ReembedAdministration(installation.engine)


async def found(installation: Installation, repository: str, number: int) -> bool:
    reply = await installation.recall(repository, f"build number{number} fails, tool{number} of runner{number}")
    assert not reply.degraded, reply
    return any(f"number{number} " in item.summary for item in reply.items)


# --- the wish --------------------------------------------------------------------------------------------------------


async def test_a_start_embeds_everything_and_running_services_take_the_new_model(
    settings: CommonSettings, repository: str
) -> None:
    async with filled(settings, repository, 250, *ALL) as installation:
        event_id = await ask(installation, actor="admin")
        done = await installation.facts("reembed_done", model=NEW, seconds=PATIENCE_SECONDS)
        assert await settled(installation, event_id) == ("written", "started")
        assert (done["done"], done["failed"], done["skipped"], done["previous_model"]) == (250, 0, 0, OLD)
        assert await models(installation) == {OLD: "retired", NEW: "serving"}
        assert await embedded_by(installation) == {OLD: 250, NEW: 250}
        assert await found(installation, repository, 7)
        # Written as soon as the services see the cut-over, by both models.
        event = await installation.publish(ci_run(repository, LOG.format(word="phoenix")))
        assert await embedded_by(installation) == {OLD: 251, NEW: 251}
        assert event.status == "written"
        reply = await installation.recall(repository, "cannot find module phoenix")
    assert "phoenix" in reply.block


async def test_status_tells_the_model_what_is_stale_and_what_runs(settings: CommonSettings, repository: str) -> None:
    async with filled(settings, repository, 30, WRITER) as installation:
        status = await desk(installation).find_status(NEW)
        assert (status.serving.name, status.job, status.stale.rows, status.stale.total) == (OLD, None, 30, 30)
        assert (await desk(installation).find_status()).stale.rows == 0


async def test_a_billed_model_is_only_counted_until_somebody_says_so(settings: CommonSettings, repository: str) -> None:
    async with filled(settings, repository, 12, GATE, WRITER, REEMBEDDER) as installation:
        event_id = await ask(installation, MODEL, reembed=False)
        fact = await installation.facts("reembed_progress", model=MODEL, seconds=PATIENCE_SECONDS)
        assert await settled(installation, event_id) == ("skipped", "counted")
        assert (fact["state"], fact["stale"]) == ("idle", 12)
        assert await installation.rows(sa.select(reembed_jobs)) == []


async def test_a_local_model_starts_by_itself(settings: CommonSettings, repository: str) -> None:
    async with filled(settings, repository, 12, GATE, WRITER, REEMBEDDER) as installation:
        await ask(installation, reembed=False)
        await job_until(installation, state="done")
        assert await models(installation) == {OLD: "retired", NEW: "serving"}


async def test_eight_starts_at_once_give_one_job(settings: CommonSettings, repository: str) -> None:
    # Without a gate the job waits, so that none of the eight comes too late.
    async with filled(settings, repository, 12, WRITER, REEMBEDDER) as installation:
        ids = await asyncio.gather(*(ask(installation) for _ in range(8)))
        ends = [await settled(installation, event_id) for event_id in ids]
        assert sorted(ends) == [*[("refused", "in_progress")] * 7, ("written", "started")]
        assert len(await installation.rows(sa.select(reembed_jobs))) == 1
        assert (await installation.facts("reembed_refused"))["reason"] == "in_progress"


async def test_a_second_start_while_one_runs_is_refused_without_an_audit_row(
    settings: CommonSettings, repository: str
) -> None:
    async with filled(settings, repository, 12, WRITER, REEMBEDDER) as installation:
        await ask(installation)
        await job_until(installation, waits_for="gate")
        assert await settled(installation, await ask(installation, MODEL)) == ("refused", "in_progress")
        assert await installation.rows(sa.select(audit)) == []


@pytest.mark.parametrize(
    ("model", "reason"), [("wordllama/other", "unknown_model"), ("nonsense", "unknown_model"), (OLD, "nothing_stale")]
)
async def test_a_start_that_makes_no_sense_is_refused(
    settings: CommonSettings, repository: str, model: str, reason: str
) -> None:
    async with filled(settings, repository, 3, WRITER, REEMBEDDER) as installation:
        assert await settled(installation, await ask(installation, model)) == ("refused", reason)


async def test_another_tenant_does_not_change_the_model_of_all(settings: CommonSettings, repository: str) -> None:
    async with filled(settings, repository, 3, WRITER, REEMBEDDER) as installation:
        installation.memory.tenant = "acme"
        assert await settled(installation, await ask(installation)) == ("refused", "not_platform")


async def test_a_model_that_cannot_be_opened_ends_the_job_with_the_reason(
    settings: CommonSettings, repository: str, provider: EmbeddingProvider
) -> None:
    provider.refused = "the"  # the background already
    async with filled(settings, repository, 3, GATE, WRITER, REEMBEDDER) as installation:
        await ask(installation, MODEL)
        failed = await installation.facts("reembed_failed", model=MODEL, seconds=PATIENCE_SECONDS)
        assert "does not take" in failed["reason"]
        assert await models(installation) == {OLD: "serving"}


# --- the walk --------------------------------------------------------------------------------------------------------


async def test_the_cursor_advances_past_a_failing_row_which_is_counted(
    settings: CommonSettings, repository: str, provider: EmbeddingProvider
) -> None:
    provider.refused = "number41 "
    async with filled(settings, repository, 150, GATE, WRITER, REEMBEDDER) as installation:
        await ask(installation, MODEL)
        job = await job_until(installation, state="done")
        assert (job["done"], job["failed"], job["skipped"]) == (149, 1, 0)
        assert len(provider.texts) == len(set(provider.texts)) == 149
        [passed] = await installation.rows(sa.select(reembed_passed.c.reason))
        assert passed == {"reason": "failed"}
        # The next run of the same model tries it again, and it alone.
        provider.refused = ""
        assert await settled(installation, await ask(installation, MODEL)) == ("written", "started")
        again = await job_until(installation, model=MODEL, stale=1, state="done")
        assert again["done"] == 1
        assert len(provider.texts) == 150


async def test_a_model_that_fails_on_many_rows_does_not_take_over(
    settings: CommonSettings, repository: str, provider: EmbeddingProvider
) -> None:
    provider.refused = "number1"
    async with filled(settings, repository, 40, GATE, WRITER, REEMBEDDER) as installation:
        await ask(installation, MODEL)
        failed = await installation.facts("reembed_failed", model=MODEL, seconds=PATIENCE_SECONDS)
        assert (failed["done"], failed["failed"]) == (29, 11)
        assert await models(installation) == {OLD: "serving", MODEL: "retired"}
        # What it did embed is not paid for again.
        provider.refused = ""
        await ask(installation, MODEL)
        again = await job_until(installation, stale=11, state="done")
        assert again["done"] == 11
        assert len(provider.texts) == 40


async def test_what_the_gate_matches_is_not_paid_for(
    settings: CommonSettings, repository: str, provider: EmbeddingProvider
) -> None:
    await add_pattern(settings, "tool5")
    async with filled(settings, repository, 20, GATE, WRITER, REEMBEDDER) as installation:
        await ask(installation, MODEL)
        job = await job_until(installation, state="done")
        assert (job["done"], job["failed"], job["skipped"]) == (19, 0, 1)
        assert not any("tool5" in text for text in provider.texts)


async def test_without_a_gate_it_waits_and_goes_on_by_itself(
    settings: CommonSettings, repository: str, provider: EmbeddingProvider
) -> None:
    async with filled(settings, repository, 20, WRITER, REEMBEDDER) as installation:
        await ask(installation, MODEL)
        await job_until(installation, waits_for="gate")
        assert provider.texts == []
        assert (await installation.facts("reembed_progress", state="waiting"))["reason"] == "gate"
        async with run_services(settings, GATE):
            await job_until(installation, state="done")


async def test_without_its_provider_it_waits_and_nothing_is_counted(
    settings: CommonSettings, repository: str, provider: EmbeddingProvider
) -> None:
    provider.is_down = True
    async with filled(settings, repository, 20, GATE, WRITER, REEMBEDDER) as installation:
        await ask(installation, MODEL)
        job = await job_until(installation, waits_for="embedder")
        assert (job["done"], job["failed"]) == (0, 0)
        provider.is_down = False
        await job_until(installation, state="done")


async def test_pausing_keeps_the_batch_in_work_and_resuming_goes_on_behind_it(
    settings: CommonSettings, repository: str, provider: EmbeddingProvider
) -> None:
    provider.hold_from(100)
    async with filled(settings, repository, 350, GATE, WRITER, REEMBEDDER) as installation:
        await ask(installation, MODEL)
        await asyncio.wait_for(provider.held.wait(), PATIENCE_SECONDS)
        await desk(installation).pause(actor="admin")
        provider.let_go()
        paused = await job_until(installation, state="paused", done=200, lease_until=None)
        assert len(provider.texts) == 200
        with pytest.raises(ReembedRefusal, match="paused already"):
            await desk(installation).pause(actor="admin")
        await desk(installation).resume(actor="admin")
        job = await job_until(installation, state="done")
        assert (job["done"], job["id"]) == (350, paused["id"])
        assert len(provider.texts) == len(set(provider.texts)) == 350
        audited = sa.select(audit.c.action, audit.c.actor).filter_by(entity_kind="embedding_model")
        actions = await installation.rows(audited.order_by(audit.c.id))
    assert [tuple(row.values()) for row in actions] == [("reembed.pause", "admin"), ("reembed.resume", "admin")]


async def test_a_start_resumes_a_paused_job_of_the_same_model(settings: CommonSettings, repository: str) -> None:
    async with filled(settings, repository, 12, WRITER, REEMBEDDER) as installation:
        await ask(installation)
        await job_until(installation, waits_for="gate")
        await desk(installation).pause(actor="admin")
        assert await settled(installation, await ask(installation)) == ("written", "resumed")
        assert len(await installation.rows(sa.select(reembed_jobs))) == 1


async def test_a_vanished_row_counts_as_neither(
    settings: CommonSettings, repository: str, provider: EmbeddingProvider
) -> None:
    provider.hold_from(0)
    async with filled(settings, repository, 20, GATE, WRITER, REEMBEDDER) as installation:
        await ask(installation, MODEL)
        await asyncio.wait_for(provider.held.wait(), PATIENCE_SECONDS)
        async with installation.engine.begin() as connection:
            await connection.execute(sa.delete(memory_items).where(memory_items.c.summary.contains("number3 ")))
        provider.let_go()
        job = await job_until(installation, state="done")
        assert (job["stale"], job["done"], job["failed"], job["skipped"]) == (20, 19, 0, 0)


async def test_of_two_copies_one_walks(settings: CommonSettings, repository: str, provider: EmbeddingProvider) -> None:
    patient = settings.model_copy(update={"lease_seconds": 60.0})  # however busy the machine is
    async with filled(patient, repository, 300, GATE, WRITER, REEMBEDDER) as installation:
        async with run_services(patient, REEMBEDDER):
            await ask(installation, MODEL)
            job = await job_until(installation, state="done")
        assert (job["epoch"], job["done"]) == (1, 300)
        assert len(provider.texts) == 300


async def test_whoever_lost_the_job_writes_nothing(settings: CommonSettings, repository: str) -> None:
    async with filled(settings, repository, 3, WRITER) as installation:
        await insert_job(installation, await open_models(installation.engine, settings))
        store = JobStore(installation.engine, 0.0)  # a lease that is over at once
        stale, fresh = await store.take(), await store.take()
        assert (stale.epoch, fresh.epoch) == (1, 2)
        rows = await store.find_rows(stale, MEMORY)
        with pytest.raises(JobLost):
            await store.commit_batch(stale, MEMORY, Batch(rows, failed=[row.id for row in rows]), 1.0)
        assert await installation.rows(sa.select(reembed_passed)) == []
        assert (await store.commit_batch(fresh, MEMORY, Batch(rows, failed=[row.id for row in rows]), 1.0)).failed == 3


async def insert_job(installation: Installation, opened: Any) -> None:
    """A job whose model is made up: it has embedded nothing."""
    async with installation.engine.begin() as connection:
        row = {"name": "x/y", "dimensions": 4, "state": "building", "background": bytes(16), "background_sha256": ""}
        made = sa.insert(embedding_models).values(**row, calibration={"texts": 1}).returning(embedding_models.c.id)
        model_id = (await connection.execute(made)).scalar_one()
        job = {"model": "x/y", "model_id": model_id, "state": "running", "stale": 3, "stale_chars": 9}
        await connection.execute(sa.insert(reembed_jobs).values(job))


# --- writes meanwhile, the cut-over, and back ------------------------------------------------------------------------


async def test_new_writes_get_vectors_of_both_models_and_succeed_without_the_new_one(
    settings: CommonSettings, repository: str, provider: EmbeddingProvider
) -> None:
    async with filled(settings, repository, 5, WRITER, REEMBEDDER) as installation:
        await ask(installation, MODEL)
        await job_until(installation, waits_for="gate")
        await desk(installation).pause(actor="test")
        async with run_services(settings, GATE):
            event = await written_by_both(installation)
            assert await models_of(installation, event.item_ids[0]) == {OLD, MODEL}
            provider.is_down = True
            event = await installation.publish(ci_run(repository, LOG.format(word="griffin")))
            assert await models_of(installation, event.item_ids[0]) == {OLD}
            provider.is_down = False
            await desk(installation).resume(actor="test")
            await job_until(installation, state="done")
            assert await models_of(installation, event.item_ids[0]) == {OLD, MODEL}


async def written_by_both(installation: Installation) -> Any:
    """The first write after the writer has seen the model that is built."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            event = await installation.publish(ci_run(f"tests/{uuid4().hex}", LOG.format(word="unicorn")))
            if len(await models_of(installation, event.item_ids[0])) == 2:
                return event


async def models_of(installation: Installation, item_id: Any) -> set[str]:
    query = sa.select(embedding_models.c.name).join(memory_vectors, memory_vectors.c.model_id == embedding_models.c.id)
    rows = await installation.rows(query.where(memory_vectors.c.item_id == item_id))
    return {row["name"] for row in rows}


async def test_a_cut_over_waits_for_a_write_in_flight_and_embeds_it(settings: CommonSettings, repository: str) -> None:
    async with filled(settings, repository, 10, GATE, WRITER, REEMBEDDER) as installation:
        old = (await open_models(installation.engine, settings)).serving
        async with installation.engine.begin() as writing:
            await hold_serving(writing, old.id)
            await ask(installation)
            await job_until(installation, done=10)
            # It stands at the lock: the write may still store without a vector of the new model.
            waiting = (
                "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%embedding_models%'"
            )
            await installation.until(sa.text(f"{waiting} and datname = current_database()"))
            late = await store_late(writing, old, repository)
        await job_until(installation, state="done", done=11)
        assert await models_of(installation, late) == {OLD, NEW}
        with pytest.raises(ModelReplaced):
            async with installation.engine.begin() as connection:
                await hold_serving(connection, old.id)


async def store_late(connection: Any, model: ServingModel, repository: str) -> Any:
    """A copy of a row under another id, as a writer that knows one model stores it."""
    columns = [column.name for column in memory_items.c if column.name not in ("id", "source_event_id")]
    item_id = uuid4()
    copied = sa.select(
        sa.literal(item_id, memory_items.c.id.type),
        sa.literal(str(item_id)),
        *(memory_items.c[name] for name in columns),
    ).limit(1)
    await connection.execute(sa.insert(memory_items).from_select(["id", "source_event_id", *columns], copied))
    vector = {column.name: column for column in memory_vectors.c} | {"item_id": sa.literal(item_id)}
    row = sa.select(*vector.values()).where(memory_vectors.c.model_id == model.id).limit(1)
    await connection.execute(sa.insert(memory_vectors).from_select(list(vector), row))
    return item_id


async def test_a_rollback_lets_the_old_model_serve_again_at_once(settings: CommonSettings, repository: str) -> None:
    async with filled(settings, repository, 60, *ALL) as installation:
        await ask(installation)
        await job_until(installation, state="done")
        event = await written_by_both(installation)
        back = await desk(installation).roll_back(actor="admin")
        assert (back.model, back.given_up, back.stale) == (OLD, NEW, 0)
        assert await models(installation) == {OLD: "serving", NEW: "retired"}
        assert await models_of(installation, event.item_ids[0]) == {OLD, NEW}
        assert (await installation.facts("reembed_rolled_back"))["serving"] == OLD
        assert await found(installation, repository, 3)
        with pytest.raises(ReembedRefusal, match="nothing to go back to"):
            await desk(installation).roll_back(actor="admin")


async def test_a_rollback_of_a_job_that_is_on_gives_it_up(settings: CommonSettings, repository: str) -> None:
    async with filled(settings, repository, 5, WRITER, REEMBEDDER) as installation:
        await ask(installation)
        await job_until(installation, waits_for="gate")
        await desk(installation).roll_back(actor="admin")
        assert await models(installation) == {OLD: "serving", NEW: "retired"}
        assert (await job_until(installation, state="rolled_back"))["done"] == 0
        # Nothing stands in the way of another one.
        assert await settled(installation, await ask(installation)) == ("written", "started")


async def test_old_vectors_are_deleted_after_their_retention_and_no_earlier(
    settings: CommonSettings, repository: str
) -> None:
    async with filled(settings, repository, 40, GATE, WRITER, REEMBEDDER) as installation:
        await ask(installation)
        await job_until(installation, state="done")
        sweeping = Sweeping(installation.engine, AdministeredSettings(installation.engine))
        await sweeping.sweep()
        assert await embedded_by(installation) == {OLD: 40, NEW: 40}
        async with installation.engine.begin() as connection:
            long_ago = sa.func.now() - sa.text("interval '8 days'")
            await connection.execute(sa.update(embedding_models).filter_by(name=OLD).values(retired_at=long_ago))
        await sweeping.sweep()
        assert await embedded_by(installation) == {NEW: 40}
        with pytest.raises(ReembedRefusal, match=f"the vectors of {OLD} are gone"):
            await desk(installation).roll_back(actor="admin")
        # It can be made again.
        await ask(installation, OLD)
        await job_until(installation, model=OLD, state="done")
        assert await models(installation) == {OLD: "serving", NEW: "retired"}


async def test_services_started_with_the_old_setting_serve_the_new_model(
    settings: CommonSettings, repository: str
) -> None:
    async with filled(settings, repository, 30, GATE, WRITER, REEMBEDDER) as installation:
        await ask(installation)
        await job_until(installation, state="done")
    async with run_services(settings, *ALL) as installation:
        assert await found(installation, repository, 11)
        event = await installation.publish(ci_run(repository, LOG.format(word="basilisk")))
        assert NEW in await models_of(installation, event.item_ids[0])


async def test_what_became_inactive_before_or_meanwhile_is_not_recalled_by_the_new_model(
    settings: CommonSettings, repository: str
) -> None:
    async with filled(settings, repository, 5, GATE, WRITER, REEMBEDDER) as installation:
        stamp = {"superseded_at": sa.func.now()}
        async with installation.engine.begin() as connection:
            is_it = memory_items.c.summary.contains("number2 ")
            await connection.execute(sa.update(memory_items).where(is_it).values(stamp))
        await ask(installation)
        await job_until(installation, state="done")
        query = (
            sa.select(memory_items.c.superseded_at.is_(None).label("of_item"), memory_vectors.c.active)
            .join(memory_vectors, memory_vectors.c.item_id == memory_items.c.id)
            .join(embedding_models, embedding_models.c.id == memory_vectors.c.model_id)
            .where(embedding_models.c.name == NEW)
        )
        rows = await installation.rows(query)
    assert len(rows) == 5
    assert all(row["of_item"] == row["active"] for row in rows)


async def test_the_same_event_counts_once(settings: CommonSettings, repository: str) -> None:
    async with filled(settings, repository, 5, GATE, WRITER, REEMBEDDER) as installation:
        event_id = await ask(installation, event_id="e-1")
        await job_until(installation, state="done")
        await ask(installation, event_id=event_id)
        rows = await installation.rows(sa.select(inbox.c.status).where(inbox.c.event_id == event_id))
        assert rows == [{"status": "written"}]
        assert len(await installation.rows(sa.select(reembed_jobs))) == 1
