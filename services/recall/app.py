"""Recall's composition root."""

from typing import Any

from lorebus.contracts import subjects
from lorebus.contracts.recall import (
    ExplainReply,
    ExplainRequest,
    RecallReply,
    RecallRequest,
    SearchReply,
    SearchRequest,
)

from libs.common.administered_settings import AdministeredSettings
from libs.common.bus.answer import Answerer, Answering
from libs.common.bus.relay import Relay
from libs.common.database import create_pool
from libs.common.domain.lexical import count_documents, tokenize
from libs.common.embedding.models import background_texts
from libs.common.embedding.serving import open_models
from libs.common.gate_client import GateClient
from libs.common.run import Program, Resources, Service
from services.recall.asking import Lookups
from services.recall.channels import OtherChannels
from services.recall.journal import Journal
from services.recall.service import RecallService
from services.recall.settings import RecallSettings
from services.recall.store import RecallStore


async def build(resources: Resources[RecallSettings]) -> Service:
    settings = resources.settings
    models = await open_models(resources.engine, settings)
    pool = await create_pool(
        settings.database_url,
        "recall",
        connections_max=settings.database_connections_max,
        timeout_seconds=settings.database_timeout_seconds,
    )
    store_seconds, cache_seconds = settings.recall_store_timeout_seconds, settings.settings_cache_seconds
    store = RecallStore(resources.engine, pool, store_seconds, cache_seconds=cache_seconds)
    relay = Relay(resources.engine, resources.client)
    journal = Journal(store, relay)
    service = RecallService(
        store=store,
        gate=GateClient(resources.client, settings.recall_gate_timeout_seconds),
        lookups=Lookups(
            models=models,
            background_words=count_documents(tokenize(text) for text in background_texts()),
        ),
        journal=journal,
        settings=AdministeredSettings(resources.engine, cache_seconds, timeout_seconds=store_seconds),
        other_channels=OtherChannels(pool, store_seconds),
    )
    answering = Answering(resources.client)
    for subject, answerer in _answerers(service).items():
        await answering.subscribe(subject, "recall", answerer)
    return Service(
        name="recall",
        tasks=[service.watch_gate, journal.run, relay.run, models.run],
        stopping=[answering.stop],
        closing=[journal.flush, pool.close],
    )


def _answerers(service: RecallService) -> dict[str, Answerer[Any, Any]]:
    return {
        subjects.RECALL_REQUEST: Answerer(
            question=RecallRequest,
            answer=service.answer,
            invalid=lambda reason: RecallReply.empty("invalid_request", reason),
            broken=lambda: RecallReply.empty("store"),
        ),
        subjects.RECALL_SEARCH: Answerer(
            question=SearchRequest,
            answer=service.search,
            invalid=lambda reason: SearchReply(degraded=True, reason="invalid_request", detail=reason),
            broken=lambda: SearchReply(degraded=True, reason="store"),
        ),
        subjects.RECALL_EXPLAIN: Answerer(
            question=ExplainRequest,
            answer=service.explain,
            invalid=lambda reason: ExplainReply(degraded=True, reason="invalid_request", detail=reason),
            broken=lambda: ExplainReply(degraded=True, reason="store"),
        ),
    }


PROGRAM = Program(name="recall", settings=RecallSettings, build=build)
