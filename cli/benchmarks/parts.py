"""The parts of a recall, each callable alone with the questions that the whole is asked with."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from faststream.nats import NatsBroker
from lorebus import Lorebus, LorebusError
from lorebus.asking import ask

from cli.benchmarks.timing import Part
from libs.common.domain.calibration import measure_background
from libs.common.domain.lexical import Frequencies
from libs.common.domain.query import PreparedQuery, prepare_query
from libs.common.embedding.models import ServingModel
from libs.common.gate_client import GateClient
from services.recall.rules import Found, ScopeName, bars_of, build_reply, created_after
from services.recall.settings import RecallSettings
from services.recall.store import Question, RecallStore

TENANT = "default"
ECHO = "bench.echo"
LIMIT = 5
DEADLINE_SECONDS = 10.0


def subscribe_echo(broker: NatsBroker) -> None:
    """The least that a service on this bus can do: FastStream hands the question over, and takes the empty answer."""

    async def answer(_question: object) -> bytes:
        return b"{}"

    broker.subscriber(ECHO, queue="bench")(answer)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A question with all that each part needs of it."""

    text: str
    query: PreparedQuery
    question: Question
    found: Sequence[Found]


@dataclass(frozen=True)
class Parts:
    """What the parts are executed with."""

    memory: Lorebus
    gate: GateClient
    store: RecallStore
    model: ServingModel
    words: Frequencies
    settings: RecallSettings
    repository: str

    async def prepare(self, text: str) -> Prepared:
        query = prepare_query(text, self.words, self.repository)
        [vector] = await self.model.embedder.embed([query.embed_text])
        background = measure_background(vector, self.model.background)
        question = Question(
            scope=ScopeName(TENANT, "swe-lessons", self.repository),
            model_id=self.model.id,
            vector=vector,
            terms=query.terms,
            terms_known=[self.words.documents.get(term, 0) for term in query.terms],
            background_size=self.words.size,
            created_after=created_after(datetime.now(UTC), 0),
            background=background,
            bars=bars_of(self.settings.recall_similarity_min, background),
            limit=LIMIT,
        )
        return Prepared(text, query, question, await self.store.find_fitting(question))

    def of(self, asked: Sequence[Prepared]) -> dict[str, Part]:
        """By name, in the order in which a recall runs through them."""

        def nth(number: int) -> Prepared:
            return asked[number % len(asked)]

        async def empty(_number: int) -> object:
            return await ask(self.memory.connection, ECHO, lambda _left: b"{}", DEADLINE_SECONDS)

        async def query(number: int) -> object:
            one = nth(number)
            measure_background(one.question.vector, self.model.background)
            return prepare_query(one.text, self.words, self.repository)

        async def embed(number: int) -> object:
            return await self.model.embedder.embed([nth(number).query.embed_text])

        async def statement(number: int) -> object:
            return await self.store.find_fitting(nth(number).question)

        async def screen(number: int) -> object:
            texts = {str(item.id): item.summary for item in nth(number).found}
            return await self.gate.screen("recall", texts, tenant=TENANT)

        async def render(number: int) -> object:
            return build_reply(nth(number).found, 0).model_dump_json().encode()

        async def recall(number: int) -> object:
            one = nth(number)
            reply = await self.memory.recall(
                one.text, repository=self.repository, limit=LIMIT, deadline_seconds=DEADLINE_SECONDS
            )
            if reply.degraded or len(reply.items) != len(one.found):
                raise RecallNotWhole(f"a recall gave {len(reply.items)} items, degraded by {reply.reason}")
            return reply

        return {
            "empty": empty,
            "query": query,
            "embed": embed,
            "statement": statement,
            "screen": screen,
            "render": render,
            "recall": recall,
        }


class RecallNotWhole(LorebusError):
    """A recall did not do what is measured, so its time says nothing."""
