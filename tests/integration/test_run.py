"""Starting, stopping and giving up: what a process of services promises its operator."""

import asyncio
import gc
import urllib.error
import urllib.request

import nats
import pytest
from conftest import run_services

from libs.common.bus.streams import WRITER as WRITER_CONSUMER
from libs.common.errors import EmbeddingModelMismatch, SetupIncomplete
from libs.common.provision import provision
from libs.common.run import running
from libs.common.settings import CommonSettings
from libs.embedded.nats_server import EmbeddedNats
from services.gate.app import PROGRAM as GATE
from services.recall.app import PROGRAM as RECALL
from services.writer.app import PROGRAM as WRITER


async def test_a_service_that_loses_its_consumer_stops_and_names_the_remedy(other_bus: CommonSettings) -> None:
    settings = other_bus.model_copy(update={"streams_check_seconds": 0.05})
    client = await nats.connect(settings.nats_url)
    async with running([WRITER], settings) as failed:
        await client.jetstream().delete_consumer(WRITER_CONSUMER.stream, WRITER_CONSUMER.name)
        with pytest.raises(SetupIncomplete, match="lorebus migrate"):
            await asyncio.wait_for(failed, 10)
    await client.close()


async def test_a_bus_without_streams_is_refused_at_start(servers: CommonSettings, open_folder: object) -> None:
    server = EmbeddedNats(open_folder / "empty-bus", durable=False)
    settings = servers.model_copy(update={"nats_url": await server.start()})
    with pytest.raises(SetupIncomplete, match="lorebus migrate"):
        async with running([WRITER], settings):
            pass
    await server.stop()


@pytest.mark.parametrize(
    ("field", "url", "remedy"),
    [
        ("nats_url", "nats://127.0.0.1:1", "LOREBUS_NATS_URL"),
        ("database_url", "postgresql://postgres@127.0.0.1:1/lorebus", "LOREBUS_DATABASE_URL"),
    ],
)
async def test_a_server_that_does_not_answer_at_start_is_named(
    other_bus: CommonSettings, field: str, url: str, remedy: str
) -> None:
    settings = other_bus.model_copy(update={field: url})
    with pytest.raises(SetupIncomplete, match=remedy):
        async with running([GATE], settings):
            pass


async def test_migrating_without_a_database_names_the_remedy(other_bus: CommonSettings) -> None:
    settings = other_bus.model_copy(update={"database_url": "postgresql://postgres@127.0.0.1:1/lorebus"})
    with pytest.raises(SetupIncomplete, match="LOREBUS_DATABASE_URL"):
        await provision(settings)


async def test_another_embedder_than_the_stored_one_is_refused(other_bus: CommonSettings, installation: object) -> None:
    settings = other_bus.model_copy(update={"embedder": "hashing"})
    with pytest.raises(EmbeddingModelMismatch, match="wordllama"):
        async with running([RECALL], settings):
            pass


async def test_health_answers_over_http(other_bus: CommonSettings, free_port: int) -> None:
    settings = other_bus.model_copy(update={"health_port": free_port})
    async with run_services(settings, GATE):
        for path in ("healthz", "readyz"):
            answer = await asyncio.to_thread(urllib.request.urlopen, f"http://127.0.0.1:{free_port}/{path}")
            with answer:
                assert answer.status == 200
    with pytest.raises(urllib.error.URLError):
        await asyncio.to_thread(urllib.request.urlopen, f"http://127.0.0.1:{free_port}/healthz")


async def test_what_has_stopped_can_be_collected_again(other_bus: CommonSettings) -> None:
    async with running([GATE], other_bus):
        assert gc.get_freeze_count(), "not looked through while it runs"
    assert not gc.get_freeze_count()
