"""The writer's composition root."""

from lorebus.contracts.runs import RunFinished
from lorebus.contracts.subjects import RUN_FINISHED

from libs.common.bus.consume import Consumer, Consumption
from libs.common.bus.relay import Relay
from libs.common.bus.streams import WRITER
from libs.common.dead_letters import DeadLetters
from libs.common.embedding.choose import create_embedder
from libs.common.embedding.models import open_model
from libs.common.gate_client import GateClient
from libs.common.inbox import Inbox
from libs.common.run import Program, Resources, Service
from services.writer.service import WriterService
from services.writer.settings import WriterSettings
from services.writer.store import WriterStore


async def build(resources: Resources[WriterSettings]) -> Service:
    settings = resources.settings
    inbox = Inbox(resources.engine, settings.lease_seconds)
    relay = Relay(resources.engine, resources.client)
    service = WriterService(
        store=WriterStore(resources.engine, inbox, settings.writer_supersede_similarity_min),
        gate=GateClient(resources.client, settings.writer_gate_timeout_seconds),
        model=await open_model(resources.engine, create_embedder(settings.embedder, settings.embedding_dimensions)),
        relay=relay,
    )
    Consumer(
        Consumption(
            service="writer",
            subject=RUN_FINISHED,
            message=RunFinished,
            source=WRITER,
            handle=service.write,
            receipt=lambda run: {"run_id": run.run_id, "repository": run.repository},
        ),
        inbox,
        DeadLetters(resources.engine, inbox, "writer"),
        lease_seconds=settings.lease_seconds,
        handling_seconds_max=settings.writer_handling_seconds_max,
    ).subscribe(resources.broker, concurrency=settings.writer_concurrency)
    return Service(name="writer", tasks=[relay.run])


PROGRAM = Program(name="writer", settings=WriterSettings, build=build)
