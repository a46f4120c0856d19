"""Each event counts once: claims, leases and ends, on a real database."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import uuid4

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from libs.common.database import create_engine
from libs.common.errors import ClaimLost
from libs.common.inbox import Claim, Inbox, Leased, Outcome, Receipt, Settled
from libs.common.schema import inbox as inbox_table
from libs.common.settings import CommonSettings

SHORT, LONG = 0.0, 60.0


@pytest.fixture
async def engine(servers: CommonSettings) -> AsyncIterator[AsyncEngine]:
    engine = create_engine(servers.database_url, "tests")
    yield engine
    await engine.dispose()


def receipt(**fields: object) -> Receipt:
    known = {
        "tenant": "default",
        "schema_name": "test.inbox",
        "event_id": uuid4().hex,
        "payload_sha256": "a" * 64,
        "stream": "RUNS",
        "stream_sequence": 1,
        "published_at": datetime.now(UTC),
    }
    return Receipt(**(known | fields))


async def claimed(inbox: Inbox, event: Receipt) -> Claim:
    claim = await inbox.claim(event)
    assert isinstance(claim, Claim)
    return claim


async def settle(engine: AsyncEngine, inbox: Inbox, claim: Claim) -> None:
    async with engine.begin() as connection:
        await inbox.settle(connection, claim, Outcome("skipped", "test"))


async def test_a_new_event_is_claimed_once(engine: AsyncEngine) -> None:
    inbox, event = Inbox(engine, LONG), receipt()
    assert (await claimed(inbox, event)).number == 1
    again = await inbox.claim(event)
    assert isinstance(again, Leased)
    assert LONG - 30 < again.seconds_left <= LONG


async def test_a_claim_whose_lease_ran_out_passes_to_the_next(engine: AsyncEngine) -> None:
    inbox, event = Inbox(engine, SHORT), receipt()
    first, second = await claimed(inbox, event), await claimed(inbox, event)
    assert (first.number, second.number) == (1, 2)


async def test_the_holder_of_an_old_claim_can_end_nothing(engine: AsyncEngine) -> None:
    inbox, event = Inbox(engine, SHORT), receipt()
    stale, current = await claimed(inbox, event), await claimed(inbox, event)
    with pytest.raises(ClaimLost):
        await settle(engine, inbox, stale)
    await settle(engine, inbox, current)


async def test_a_heartbeat_keeps_the_event(engine: AsyncEngine) -> None:
    brief, event = Inbox(engine, SHORT), receipt()
    claim = await claimed(brief, event)
    await Inbox(engine, LONG).extend(claim)
    assert isinstance(await brief.claim(event), Leased)


async def test_an_ended_event_is_never_claimed_again(engine: AsyncEngine) -> None:
    inbox, event = Inbox(engine, SHORT), receipt()
    await settle(engine, inbox, await claimed(inbox, event))
    assert await inbox.claim(event) == Settled(is_conflict=False)


async def test_the_same_id_with_other_bytes_is_a_conflict(engine: AsyncEngine) -> None:
    inbox, event = Inbox(engine, SHORT), receipt()
    await settle(engine, inbox, await claimed(inbox, event))
    assert await inbox.claim(receipt(event_id=event.event_id, payload_sha256="b" * 64)) == Settled(is_conflict=True)


async def test_other_bytes_cannot_take_over_an_event_that_is_not_done(engine: AsyncEngine) -> None:
    inbox, event = Inbox(engine, SHORT), receipt()
    await claimed(inbox, event)
    assert isinstance(await inbox.claim(receipt(event_id=event.event_id, payload_sha256="b" * 64)), Leased)


async def test_two_tenants_may_use_the_same_id(engine: AsyncEngine) -> None:
    inbox, event = Inbox(engine, LONG), receipt()
    await claimed(inbox, event)
    assert (await claimed(inbox, receipt(event_id=event.event_id, tenant="acme"))).number == 1


async def test_an_outage_gives_the_event_back_uncounted_and_a_failure_counts(engine: AsyncEngine) -> None:
    inbox, event = Inbox(engine, LONG), receipt()
    await inbox.release(await claimed(inbox, event))
    after_outage = await claimed(inbox, event)
    await inbox.count_failure(after_outage)
    after_failure = await claimed(inbox, event)
    assert (after_outage.failures, after_failure.failures) == (0, 1)


async def test_a_loss_is_counted_when_the_holder_went_away_not_when_it_gave_the_event_back(
    engine: AsyncEngine,
) -> None:
    inbox, event = Inbox(engine, SHORT), receipt()
    await inbox.release(await claimed(inbox, event))
    after_outage = await claimed(inbox, event)
    after_loss = await claimed(inbox, event)
    assert (after_outage.losses, after_loss.losses) == (0, 1)


async def test_an_end_that_is_rolled_back_did_not_happen(engine: AsyncEngine) -> None:
    inbox, event = Inbox(engine, SHORT), receipt()
    claim = await claimed(inbox, event)
    async with engine.connect() as connection:
        await inbox.settle(connection, claim, Outcome("skipped"))
        await connection.rollback()
    assert isinstance(await inbox.claim(event), Claim)


async def test_a_terminal_state_is_one_of_the_four(engine: AsyncEngine) -> None:
    inbox, event = Inbox(engine, LONG), receipt()
    await claimed(inbox, event)
    with pytest.raises(sa.exc.IntegrityError, match="status"):
        async with engine.begin() as connection:
            await connection.execute(sa.update(inbox_table).values(status="lost"))
