"""The gate as its callers see it: texts in, verdicts out, or GateUnavailable."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from lorebus.contracts.gate import TEXT_BYTES_MAX, TEXTS_MAX, Origin, ScreenedText, ScreenReply, ScreenRequest
from lorebus.contracts.subjects import GATE_SCREEN
from lorebus.errors import InvalidMessage, MemoryUnavailable
from nats.aio.client import Client

from libs.common.bus.ask import ask
from libs.common.errors import GateUnavailable

Purpose = Literal["write", "recall"]


@dataclass(frozen=True)
class Screening:
    """What the gate found. Ids that are in neither set are clean."""

    pattern_set: str
    matched: Mapping[str, list[str]]
    """Pattern labels by id."""
    incomplete: frozenset[str]
    watched: Mapping[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Labels of patterns that only watch, by id, whatever the verdict."""

    @property
    def patterns(self) -> list[str]:
        """Every pattern that matched, once."""
        return _distinct(self.matched)

    @property
    def watched_patterns(self) -> list[str]:
        """Every pattern that only watches and matched, once."""
        return _distinct(self.watched)


class GateClient:
    """Asks `gate.screen` in batches."""

    def __init__(self, client: Client, timeout_seconds: float) -> None:
        self._client = client
        self._timeout_seconds = timeout_seconds

    async def screen(
        self, purpose: Purpose, texts: Mapping[str, str], *, tenant: str, origin: Origin | None = None
    ) -> Screening:
        """Screens texts by id. Raises GateUnavailable when any of them could not be judged at all."""
        pattern_sets: set[str] = set()
        matched: dict[str, list[str]] = {}
        incomplete: set[str] = set()
        watched: dict[str, list[str]] = {}
        for batch in _batches(texts):
            reply = await self._ask(ScreenRequest(purpose=purpose, tenant=tenant, origin=origin, texts=batch))
            pattern_sets.add(reply.pattern_set)
            matched |= {verdict.id: verdict.patterns for verdict in reply.verdicts if verdict.verdict == "matched"}
            incomplete |= {verdict.id for verdict in reply.verdicts if verdict.verdict == "incomplete"}
            watched |= {verdict.id: verdict.watched for verdict in reply.verdicts if verdict.watched}
        if len(pattern_sets) > 1:
            raise GateUnavailable("the pattern set changed between two batches of one question")
        return Screening("".join(pattern_sets), matched, frozenset(incomplete), watched)

    async def find_pattern_set(self) -> str:
        """The pattern set in force. Raises GateUnavailable when there is none."""
        return (await self._ask(ScreenRequest(purpose="recall", texts=[]))).pattern_set

    async def _ask(self, request: ScreenRequest) -> ScreenReply:
        try:
            reply = await ask(self._client, GATE_SCREEN, request, ScreenReply, timeout_seconds=self._timeout_seconds)
        except (MemoryUnavailable, InvalidMessage) as error:
            raise GateUnavailable(str(error)) from error
        if reply.status != "ok":
            raise GateUnavailable(f"the gate answered {reply.status}")
        # A text that the gate left out was not judged.
        if {verdict.id for verdict in reply.verdicts} != {text.id for text in request.texts}:
            raise GateUnavailable("the gate did not judge every text")
        return reply


def _distinct(labels_by_id: Mapping[str, list[str]]) -> list[str]:
    return sorted({label for labels in labels_by_id.values() for label in labels})


def _batches(texts: Mapping[str, str]) -> Iterator[list[ScreenedText]]:
    batch: list[ScreenedText] = []
    bytes_left = TEXT_BYTES_MAX
    for id_, text in texts.items():
        size = len(text.encode())
        if batch and (len(batch) == TEXTS_MAX or size > bytes_left):
            yield batch
            batch, bytes_left = [], TEXT_BYTES_MAX
        batch.append(ScreenedText(id=id_, text=text))
        bytes_left -= size
    if batch:
        yield batch
