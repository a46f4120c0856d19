"""The reembedder's composition root."""

from lorebus.contracts.embedding import EmbeddingChanged
from lorebus.contracts.subjects import EMBEDDING_CHANGED

from libs.common.administered_settings import AdministeredSettings
from libs.common.bus.consume import Consumer, Consumption
from libs.common.bus.relay import Relay
from libs.common.bus.streams import REEMBEDDER
from libs.common.dead_letters import DeadLetters
from libs.common.gate_client import GateClient
from libs.common.inbox import Inbox
from libs.common.run import Program, Resources, Service
from services.reembedder.batching import Batching
from services.reembedder.service import ReembedderService
from services.reembedder.settings import ReembedderSettings
from services.reembedder.store import JobStore
from services.reembedder.sweeping import Sweeping
from services.reembedder.walking import Walking
from services.reembedder.wishes import Wishes


async def build(resources: Resources[ReembedderSettings]) -> Service:
    settings, engine = resources.settings, resources.engine
    inbox = Inbox(engine, settings.lease_seconds)
    relay = Relay(engine, resources.client)
    service = ReembedderService(Wishes(engine, inbox), relay)
    consumption = Consumption(
        service="reembedder",
        subject=EMBEDDING_CHANGED,
        message=EmbeddingChanged,
        source=REEMBEDDER,
        handle=service.change,
    )
    dead_letters = DeadLetters(engine, inbox, "reembedder")
    consumer = Consumer(consumption, inbox, dead_letters, lease_seconds=settings.lease_seconds)
    consumer.subscribe(resources.broker, concurrency=1)
    walking = Walking(
        JobStore(engine, settings.lease_seconds),
        engine,
        Batching(GateClient(resources.client, settings.reembedder_gate_timeout_seconds)),
        relay,
        poll_seconds=settings.reembedder_poll_seconds,
        lease_seconds=settings.lease_seconds,
    )
    administered = AdministeredSettings(engine, settings.settings_cache_seconds)
    tasks = [relay.run, walking.run, Sweeping(engine, administered).run]
    return Service(name="reembedder", tasks=tasks, stopping=[walking.stop])


PROGRAM = Program(name="reembedder", settings=ReembedderSettings, build=build)
