"""The parts of a recall, each callable alone with the questions that the whole is asked with."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from faststream.nats import NatsBroker
from lorebus import Lorebus, LorebusError, RecallReply
from lorebus.asking import ask
from nats.aio.msg import Msg

from cli.benchmarks.timing import Part
from libs.common.domain.calibration import measure_background
from libs.common.domain.lexical import Frequencies
from libs.common.domain.query import PreparedQuery, prepare_query
from libs.common.domain.setting_keys import LESSON_RETRIEVAL_THRESHOLD
from libs.common.embedding.models import ServingModel
from libs.common.gate_client import GateClient
from services.recall.replies import build_reply
from services.recall.rules import Found, ScopeName, bars_of, created_after
from services.recall.store import Question, RecallStore

TENANT = "default"
ECHO = "bench.echo"
BARE_ECHO = "bench.bare-echo"
LIMIT = 5
DEADLINE_SECONDS = 10.0


async def subscribe_echoes(broker: NatsBroker) -> None:
    """The least that a service can do: by FastStream, and on the bare client as recall itself answers."""

    async def answer(_question: object) -> bytes:
        return b"{}"

    async def answer_bare(message: Msg) -> None:
        await message.respond(b"{}")

    broker.subscriber(ECHO, queue="bench")(answer)
    await broker.start()
    await (await broker.connect()).subscribe(BARE_ECHO, queue="bench", cb=answer_bare)


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
            bars=bars_of(LESSON_RETRIEVAL_THRESHOLD.default, background),
            limit=LIMIT,
            fingerprints=query.fingerprints,
        )
        return Prepared(text, query, question, await self.store.find_fitting(question))

    def of(self, asked: Sequence[Prepared]) -> dict[str, Part]:
        """By name, in the order in which a recall runs through them; each asks the questions in turn."""
        parts = {
            "empty": self._empty,
            "bare": self._bare,
            "query": self._query,
            "embed": self._embed,
            "statement": self._statement,
            "screen": self._screen,
            "render": self._render,
            "recall": self._recall,
        }

        def in_turn(part: Callable[[Prepared], Awaitable[object]]) -> Part:
            return lambda number: part(asked[number % len(asked)])

        async def fresh(number: int) -> object:
            return await self._ask(space_out(asked[number % len(asked)].text, 1 + number // len(asked)))

        return {name: in_turn(part) for name, part in parts.items()} | {"fresh": fresh}

    async def _empty(self, _one: Prepared) -> object:
        return await ask(self.memory.connection, ECHO, lambda _left: b"{}", DEADLINE_SECONDS)

    async def _bare(self, _one: Prepared) -> object:
        return await ask(self.memory.connection, BARE_ECHO, lambda _left: b"{}", DEADLINE_SECONDS)

    async def _query(self, one: Prepared) -> object:
        measure_background(one.question.vector, self.model.background)
        return prepare_query(one.text, self.words, self.repository)

    async def _embed(self, one: Prepared) -> object:
        return await self.model.embedder.embed([one.query.embed_text])

    async def _statement(self, one: Prepared) -> object:
        return await self.store.find_fitting(one.question)

    async def _screen(self, one: Prepared) -> object:
        texts = {str(item.id): item.summary for item in one.found}
        return await self.gate.screen("recall", texts, tenant=TENANT)

    async def _render(self, one: Prepared) -> object:
        return build_reply(one.found, 0).model_dump_json().encode()

    async def _recall(self, one: Prepared) -> object:
        reply = await self._ask(one.text)
        if len(reply.items) != len(one.found):
            raise RecallNotWhole(f"a recall gave {len(reply.items)} items in place of {len(one.found)}")
        return reply

    async def _ask(self, text: str) -> RecallReply:
        reply = await self.memory.recall(
            text, repository=self.repository, limit=LIMIT, deadline_seconds=DEADLINE_SECONDS
        )
        if reply.degraded:
            raise RecallNotWhole(f"a recall was degraded by {reply.reason}")
        return reply


def space_out(text: str, number: int) -> str:
    """The same words, as a text that nobody has asked with before: the number says which gaps are wider."""
    first, *words = text.split(" ")
    return first + "".join(f"{' ' * (1 + (number >> place & 1))}{word}" for place, word in enumerate(words))


class RecallNotWhole(LorebusError):
    """A recall did not do what is measured, so its time says nothing."""
