"""The reembedder's story: another model is named; what it has not embedded is counted, or a walk begins."""

import structlog
from lorebus.contracts.embedding import EmbeddingChanged

from libs.common.bus.relay import Relay
from libs.common.inbox import Claim
from services.reembedder.rules import normalise
from services.reembedder.wishes import Wishes

_log = structlog.get_logger("reembedder")


class ReembedderService:
    """embedding.changed → job → walk (`walking`): stale rows → gate.screen → embed → vectors and cursor → cut-over

    The message is done with when the job is made; the job outlives it.
    """

    def __init__(self, wishes: Wishes, relay: Relay) -> None:
        self._wishes = wishes
        self._relay = relay

    async def change(self, changed: EmbeddingChanged, claim: Claim) -> None:
        wish = normalise(changed)
        decision = await self._wishes.settle(claim, wish)
        self._relay.nudge()
        _log.info("reembedder.wish_settled", event_id=wish.event_id, model=wish.model, decision=str(decision))
