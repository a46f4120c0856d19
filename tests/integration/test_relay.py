"""Facts leave the outbox in order, at least once, and a tap hears each of them once."""

import asyncio
from collections.abc import AsyncIterator

import nats
import pytest
import sqlalchemy as sa
from lorebus.contracts.facts.consumption import EventConflict
from nats.aio.client import Client
from sqlalchemy.ext.asyncio import AsyncEngine

from libs.common.bus.relay import Relay
from libs.common.bus.streams import provision_streams
from libs.common.database import create_engine
from libs.common.outbox import insert_events
from libs.common.schema import outbox
from libs.common.settings import CommonSettings


@pytest.fixture
async def engine(apart: CommonSettings) -> AsyncIterator[AsyncEngine]:
    engine = create_engine(apart.database_url, "tests")
    yield engine
    await engine.dispose()


@pytest.fixture
async def client(apart: CommonSettings) -> AsyncIterator[Client]:
    client = await nats.connect(apart.nats_url)
    yield client
    await client.close()


async def queue(engine: AsyncEngine, *ids: str) -> None:
    async with engine.begin() as connection:
        await insert_events(connection, [EventConflict(schema_name="run.finished", event_id=id_) for id_ in ids])


async def told(client: Client) -> list[str]:
    stream = client.jetstream()
    last = (await stream.stream_info("EVENTS")).state.last_seq
    messages = [await stream.get_msg("EVENTS", number, direct=True) for number in range(1, last + 1)]
    return [EventConflict.model_validate_json(message.data or b"").event_id for message in messages]


async def waiting(engine: AsyncEngine) -> int:
    async with engine.connect() as connection:
        return await connection.scalar(sa.select(sa.func.count()).select_from(outbox)) or 0


async def test_facts_are_told_in_order_and_leave_the_outbox(engine: AsyncEngine, client: Client) -> None:
    ids = [str(number) for number in range(20)]
    await queue(engine, *ids)
    assert await Relay(engine, client).move_batch() == 20
    assert (await told(client), await waiting(engine)) == (ids, 0)


async def test_a_relay_that_died_before_deleting_tells_nothing_twice(engine: AsyncEngine, client: Client) -> None:
    class DiesBeforeDeleting(Relay):
        async def _delete(self, connection: object, ids: list[int]) -> None:
            raise ConnectionResetError

    await queue(engine, "a", "b")
    with pytest.raises(ConnectionResetError):
        await DiesBeforeDeleting(engine, client).move_batch()
    assert await waiting(engine) == 2
    await Relay(engine, client).move_batch()
    assert (await told(client), await waiting(engine)) == (["a", "b"], 0)


async def test_two_relays_do_not_tell_the_same_fact(engine: AsyncEngine, client: Client) -> None:
    await queue(engine, *(str(number) for number in range(50)))
    relays = [Relay(engine, client) for _ in range(4)]
    moved = await asyncio.gather(*(relay.move_batch() for relay in relays))
    assert sum(moved) == 50
    assert len(await told(client)) == 50


async def test_a_fact_of_a_transaction_that_failed_is_never_told(engine: AsyncEngine, client: Client) -> None:
    async with engine.connect() as connection:
        await insert_events(connection, [EventConflict(schema_name="run.finished", event_id="undone")])
        await connection.rollback()
    await Relay(engine, client).move_batch()
    assert await told(client) == []


async def test_streams_can_be_provisioned_again_without_losing_what_they_hold(
    engine: AsyncEngine, client: Client
) -> None:
    await queue(engine, "kept")
    await Relay(engine, client).move_batch()
    await provision_streams(client, replicas=1, lease_seconds=2)
    assert await told(client) == ["kept"]
