"""The gate's composition root."""

import sys
from functools import partial

import structlog
from lorebus.contracts.gate import ScreenReply, ScreenRequest
from lorebus.contracts.subjects import GATE_SCREEN

from libs.common.administered_settings import AdministeredSettings
from libs.common.bus.answer import Answerer, Answering
from libs.common.bus.relay import Relay
from libs.common.run import Program, Resources, Service
from services.gate.crew import ScanCrew
from services.gate.keeper import PatternKeeper
from services.gate.patterns import load_builtin_patterns
from services.gate.service import GateService
from services.gate.settings import GateSettings
from services.gate.store import GateStore

_log = structlog.get_logger("gate")

SWITCH_SECONDS = 0.001


async def build(resources: Resources[GateSettings]) -> Service:
    # The thread that scans gives way to the loop so soon, in place of after five milliseconds.
    sys.setswitchinterval(SWITCH_SECONDS)
    settings = AdministeredSettings(resources.engine, resources.settings.settings_cache_seconds)
    store = GateStore(resources.engine, settings)
    if displaced := await store.bring_built_in(load_builtin_patterns()):
        _log.warning("gate.built_in_patterns_displaced", patterns=displaced)
    keeper = PatternKeeper(store, resources.settings)
    await keeper.load()
    crew = ScanCrew()
    service = GateService(store, keeper, crew)
    answerer = Answerer(
        question=ScreenRequest,
        answer=service.screen,
        invalid=lambda reason: ScreenReply(status="invalid_request", reason=reason),
        broken=partial(ScreenReply, status="load_failed"),
    )
    answering = Answering(resources.client)
    await answering.subscribe(GATE_SCREEN, "gate", answerer)
    relay = Relay(resources.engine, resources.client)
    return Service(name="gate", tasks=[keeper.keep_loaded, relay.run], stopping=[answering.stop], closing=[crew.close])


PROGRAM = Program(name="gate", settings=GateSettings, build=build)
