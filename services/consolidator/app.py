"""The consolidator's composition root."""

from typing import Any

from lorebus.contracts.consolidation import RequestConsolidation
from lorebus.contracts.subjects import CONSOLIDATION_REQUESTED

from libs.common.administered_settings import AdministeredSettings
from libs.common.bus.consume import Consumer, Consumption
from libs.common.bus.relay import Relay
from libs.common.bus.streams import CONSOLIDATOR
from libs.common.channel_budget import ChannelBudget
from libs.common.dead_letters import DeadLetters
from libs.common.domain.lexical import count_documents, tokenize
from libs.common.embedding.models import background_texts
from libs.common.embedding.serving import open_models
from libs.common.gate_client import GateClient
from libs.common.inbox import Inbox
from libs.common.language_model.answers import ModelAnswers
from libs.common.language_model.metered import open_metered_model
from libs.common.run import Program, Resources, Service
from services.consolidator.embedding import Embedding
from services.consolidator.forgetting.erasing import Erasing
from services.consolidator.forgetting.handling import Forgetting
from services.consolidator.merging import Merging
from services.consolidator.model.merger import ModelMerger
from services.consolidator.planning import Planning
from services.consolidator.scheduling import Scheduling
from services.consolidator.service import ConsolidatorService
from services.consolidator.settings import ConsolidatorSettings
from services.consolidator.store import ConsolidatorStore


async def build(resources: Resources[ConsolidatorSettings]) -> Service:
    settings = resources.settings
    inbox = Inbox(resources.engine, settings.lease_seconds)
    relay = Relay(resources.engine, resources.client)
    store = ConsolidatorStore(resources.engine, inbox)
    administered = AdministeredSettings(resources.engine, settings.settings_cache_seconds)
    models = await open_models(resources.engine, settings, is_writing=True)
    budget = ChannelBudget(resources.engine, administered)
    service = ConsolidatorService(
        store=store,
        planning=Planning(store, administered),
        merging=Merging(
            GateClient(resources.client, settings.consolidator_gate_timeout_seconds),
            await _open_merger(resources, budget),
            count_documents(tokenize(text) for text in background_texts()),
        ),
        embedding=Embedding(models, budget),
        settings=administered,
        relay=relay,
    )
    erasing = Erasing(resources.engine, resources.client)
    forgetting = Forgetting(resources.engine, inbox, administered, relay=relay, erasing=erasing)
    for consumption in (*_consumptions(service), forgetting.consumption()):
        Consumer(
            consumption,
            inbox,
            DeadLetters(resources.engine, inbox, "consolidator"),
            lease_seconds=settings.lease_seconds,
            handling_seconds_max=settings.consolidator_handling_seconds_max,
        ).subscribe(resources.broker, concurrency=settings.consolidator_concurrency)
    scheduling = Scheduling(resources.engine, administered, relay, settings.consolidator_schedule_seconds)
    return Service(name="consolidator", tasks=[relay.run, scheduling.run, models.run, erasing.run])


async def _open_merger(resources: Resources[ConsolidatorSettings], budget: ChannelBudget) -> ModelMerger | None:
    """None where no model is set."""
    model = await open_metered_model(resources.engine, resources.settings)
    return model and ModelMerger(model, ModelAnswers(resources.engine), budget, resources.settings.llm_tokens_max)


def _consumptions(service: ConsolidatorService) -> tuple[Consumption[Any], ...]:
    requests = Consumption(
        service="consolidator",
        subject=CONSOLIDATION_REQUESTED,
        message=RequestConsolidation,
        source=CONSOLIDATOR,
        handle=service.consolidate,
        receipt=lambda request: {"repository": request.repository},
    )
    return (requests,)


PROGRAM = Program(name="consolidator", settings=ConsolidatorSettings, build=build)
