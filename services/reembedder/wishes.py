"""What `embedding.changed` asks for: judged, and made a job, in the transaction that ends the event."""

from lorebus.contracts.embedding import EmbeddingChanged
from lorebus.contracts.facts.fact import MemoryEvent
from lorebus.contracts.facts.reembedder import ReembedProgress, ReembedRefused, ReembedStarted
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.database import outages_as_store_unavailable
from libs.common.inbox import Claim, Inbox, Outcome
from libs.common.outbox import insert_events
from libs.common.schema import reembed_jobs
from services.reembedder.cutover import find_model
from services.reembedder.rows import Stale, count_stale
from services.reembedder.rules import Decision, Refuse, Report, Resume, Situation, Start, check_wish, decide
from services.reembedder.store import find_live, resume_live


class Wishes:
    def __init__(self, engine: AsyncEngine, inbox: Inbox) -> None:
        self._engine = engine
        self._inbox = inbox

    async def settle(self, claim: Claim, changed: EmbeddingChanged) -> Decision:
        """Decides, makes or resumes the job, and ends the event. Raises ClaimLost, StoreUnavailable."""
        tenant = claim.receipt.tenant
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                stale = await count_stale(connection, changed.model)
                decision = check_wish(changed, tenant) or await _carry_out(connection, changed, stale)
                await self._inbox.settle(connection, claim, _outcome(decision))
                live = await find_live(connection)
                fact = _fact(decision, changed, stale, job_id=live.id if live else None, tenant=tenant)
                await insert_events(connection, [fact])
        return decision


async def _carry_out(connection: AsyncConnection, changed: EmbeddingChanged, stale: Stale) -> Decision:
    serving = await find_model(connection, state="serving")
    is_serving = serving is not None and serving.name == changed.model
    decision = decide(changed, Situation(await find_live(connection), stale.rows, is_serving))
    if isinstance(decision, Start) and not await _insert_job(connection, changed, stale):
        return Refuse("in_progress")  # another wish was faster: the index says so
    if isinstance(decision, Resume):
        await resume_live(connection)
    return decision


async def _insert_job(connection: AsyncConnection, changed: EmbeddingChanged, stale: Stale) -> bool:
    """False where there is a live one already."""
    new = insert(reembed_jobs).values(
        model=changed.model,
        dimensions_asked=changed.dimensions,
        state="running",
        actor=changed.actor,
        stale=stale.rows,
        stale_chars=stale.chars,
    )
    inserted = await connection.execute(new.on_conflict_do_nothing().returning(reembed_jobs.c.id))
    return inserted.one_or_none() is not None


def _outcome(decision: Decision) -> Outcome:
    match decision:
        case Refuse(reason=reason):
            return Outcome("refused", reason)
        case Report():
            return Outcome("skipped", "counted")
        case Start():
            return Outcome("written", "started")
        case Resume():
            return Outcome("written", "resumed")


def _fact(
    decision: Decision, changed: EmbeddingChanged, stale: Stale, *, job_id: int | None, tenant: str
) -> MemoryEvent:
    match decision:
        case Refuse(reason=reason):
            event_id = changed.event_id
            return ReembedRefused(tenant=tenant, model=changed.model, job_id=job_id, event_id=event_id, reason=reason)
        case Report():
            return ReembedProgress(tenant=tenant, model=changed.model, state="idle", stale=stale.rows)
        case Start() | Resume():
            return ReembedStarted(
                tenant=tenant,
                model=changed.model,
                job_id=job_id,
                stale=stale.rows,
                total=stale.total,
                actor=changed.actor,
                is_resumed=isinstance(decision, Resume),
            )
