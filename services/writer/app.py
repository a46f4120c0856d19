"""The writer's composition root."""

from typing import Any

from lorebus.contracts.evidence import PutEvidence, PutEvidenceReply
from lorebus.contracts.memory import AnyWrite, SaveReply
from lorebus.contracts.runs import RunFinished
from lorebus.contracts.subjects import EVIDENCE_PUT, MEMORY_SAVE, MEMORY_WRITE, RUN_FINISHED

from libs.common.administered_settings import AdministeredSettings
from libs.common.bus.answer import Answerer, Answering
from libs.common.bus.consume import Consumer, Consumption
from libs.common.bus.relay import Relay
from libs.common.bus.streams import NOTES, WRITER
from libs.common.dead_letters import DeadLetters
from libs.common.embedding.serving import open_models
from libs.common.gate_client import GateClient
from libs.common.inbox import Inbox, content_hash
from libs.common.language_model.answers import ModelAnswers
from libs.common.language_model.metered import MeteredModel, open_metered_model
from libs.common.run import Program, Resources, Service
from services.writer.channels.wiring import Channels
from services.writer.channels.wiring import Parts as ChannelParts
from services.writer.digesting import Digesting
from services.writer.drafting import Drafting
from services.writer.entries import receipt_of_write
from services.writer.model.distiller import ModelDistiller
from services.writer.parts import Parts
from services.writer.putting import Putting
from services.writer.rescreening import Rescreening
from services.writer.saving import Saving
from services.writer.service import WriterService
from services.writer.settings import WriterSettings
from services.writer.stale_rows import StaleRows
from services.writer.store import WriterStore
from services.writer.sweeping import Sweeping


async def build(resources: Resources[WriterSettings]) -> Service:
    settings = resources.settings
    inbox = Inbox(resources.engine, settings.lease_seconds)
    relay = Relay(resources.engine, resources.client)
    store, parts = WriterStore(resources.engine, inbox), Parts(resources.engine)
    gate = GateClient(resources.client, settings.writer_gate_timeout_seconds)
    administered = AdministeredSettings(resources.engine, settings.settings_cache_seconds)
    models = await open_models(resources.engine, settings, is_writing=True)
    model = await open_metered_model(resources.engine, settings)
    service = WriterService(
        store=store,
        drafting=Drafting(
            Digesting(parts, gate, administered), _build_distiller(resources, model), settings.writer_model_tries_max
        ),
        gate=gate,
        models=models,
        settings=administered,
        relay=relay,
    )
    channel_parts = ChannelParts(relay, resources.engine, inbox, gate, models, administered, model)
    channels = Channels(service, channel_parts, settings)
    for consumption in _consumptions(service, channels):
        Consumer(
            consumption,
            inbox,
            DeadLetters(resources.engine, inbox, "writer"),
            lease_seconds=settings.lease_seconds,
            handling_seconds_max=settings.writer_handling_seconds_max,
        ).subscribe(resources.broker, concurrency=settings.writer_concurrency)
    answering = Answering(resources.client)
    await answering.subscribe(EVIDENCE_PUT, "writer", _put_answerer(Putting(parts, administered)))
    await answering.subscribe(MEMORY_SAVE, "writer", _save_answerer(Saving(inbox, store, service)))
    for subject, answerer in channels.answerers.items():
        await answering.subscribe(subject, "writer", answerer)
    rescreening = Rescreening(StaleRows(resources.engine), gate, settings.writer_rescreen_seconds)
    tasks = [relay.run, Sweeping(parts, administered).run, rescreening.run, models.run]
    return Service(name="writer", tasks=tasks, stopping=[answering.stop])


def _build_distiller(resources: Resources[WriterSettings], model: MeteredModel | None) -> ModelDistiller | None:
    """None where no model is set."""
    return model and ModelDistiller(model, ModelAnswers(resources.engine), resources.settings.llm_tokens_max)


def _put_answerer(putting: Putting) -> Answerer[PutEvidence, PutEvidenceReply]:
    return Answerer(
        question=PutEvidence,
        answer=putting.put,
        invalid=lambda reason: PutEvidenceReply(error="invalid_request", reason=reason),
        broken=lambda: PutEvidenceReply(error="store", reason="the part could not be kept; put it again"),
    )


def _save_answerer(saving: Saving) -> Answerer[AnyWrite, SaveReply]:
    return Answerer(
        question=AnyWrite,
        answer=saving.save,
        invalid=lambda reason: SaveReply(error="invalid_request", reason=reason),
        broken=lambda: SaveReply(error="store", reason="the note could not be stored; save it again"),
    )


def _consumptions(service: WriterService, channels: Channels) -> tuple[Consumption[Any], ...]:
    runs = Consumption(
        service="writer",
        subject=RUN_FINISHED,
        message=RunFinished,
        source=WRITER,
        handle=service.write,
        receipt=lambda run: {"run_id": run.run_id, "repository": run.repository},
    )
    notes = Consumption(
        service="writer",
        subject=MEMORY_WRITE,
        message=AnyWrite,
        source=NOTES,
        handle=channels.write_told,
        receipt=receipt_of_write,
        identify=content_hash,
    )
    return runs, notes, channels.consumption()


PROGRAM = Program(name="writer", settings=WriterSettings, build=build)
