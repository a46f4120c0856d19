"""The gate's composition root."""

from functools import partial

from lorebus.contracts.gate import ScreenReply, ScreenRequest
from lorebus.contracts.subjects import GATE_SCREEN

from libs.common.administered_settings import AdministeredSettings
from libs.common.bus.answer import Answerer, Answering
from libs.common.bus.relay import Relay
from libs.common.run import Program, Resources, Service
from services.gate.patterns import load_builtin_patterns
from services.gate.service import GateService
from services.gate.settings import GateSettings
from services.gate.store import GateStore


async def build(resources: Resources[GateSettings]) -> Service:
    settings = AdministeredSettings(resources.engine, resources.settings.settings_cache_seconds)
    store = GateStore(resources.engine, settings)
    await store.upsert_builtin(load_builtin_patterns())
    service = GateService(store, resources.settings)
    await service.load()
    answerer = Answerer(
        question=ScreenRequest,
        answer=service.screen,
        invalid=lambda reason: ScreenReply(status="invalid_request", reason=reason),
        broken=partial(ScreenReply, status="load_failed"),
    )
    answering = Answering(resources.client)
    await answering.subscribe(GATE_SCREEN, "gate", answerer)
    relay = Relay(resources.engine, resources.client)
    return Service(name="gate", tasks=[service.keep_loaded, relay.run], stopping=[answering.stop])


PROGRAM = Program(name="gate", settings=GateSettings, build=build)
