"""What the demo does, in order. The inbox says what became of each run: it outlives stream, facts and kill -9."""

import asyncio
import time
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from typing import Self

from lorebus import Lorebus, LorebusError, RecallReply
from lorebus.contracts.recall import Agent
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from sqlalchemy.ext.asyncio import AsyncEngine

from cli.deliveries import Delivery, Publishing
from cli.demo import hostile, view
from cli.demo.told import PublishedRun, Told
from cli.examples import ExampleQuestion, Examples
from cli.one_machine import Machine
from cli.output import notes
from cli.running import Target
from libs.common.database import create_engine, outages_as_store_unavailable
from libs.common.inbox import Event, find_events

TENANT = "default"
TERMINAL_SECONDS_MAX = 60.0
POLL_SECONDS = 0.1
RECALL_SECONDS = 5.0
RECALL_TRIES = 3
EVENTS_MAX = 10_000


class RunsNotHandled(LorebusError):
    """A run was not taken, or did not come to an end."""


class Story:
    """One telling of the demo on a running machine."""

    def __init__(self, machine: Machine, examples: Examples, memory: Lorebus, engine: AsyncEngine) -> None:
        self._machine = machine
        self._examples = examples
        self._memory = memory
        self._engine = engine

    @classmethod
    @asynccontextmanager
    async def open(cls, machine: Machine, examples: Examples) -> AsyncGenerator[Self]:
        engine = create_engine(machine.database_url, "demo", connections_max=1)
        try:
            with outages_as_store_unavailable():
                async with Lorebus(machine.nats_url, name="lorebus-demo") as memory:
                    yield cls(machine, examples, memory, engine)
        finally:
            await engine.dispose()

    async def tell(self) -> Told:
        runs = await self._publish_runs()
        view.show_runs(runs)
        view.show_asking(self._examples.questions)
        answers = [await self._ask_question(question) for question in self._examples.questions]
        view.show_block(answers)
        refused, recalled = await self._try_attack()
        view.show_attack(refused, recalled)
        return Told(runs, answers, refused, recalled)

    async def _publish_runs(self) -> list[PublishedRun]:
        known = {event.event_id for event in await self._find_settled()}
        view.show_publishing(self._examples.runs)
        publishing = Publishing(Target(self._machine.nats_url, self._machine.data), self._examples.runs, None)
        deliveries, _ = await publishing.deliver()
        event_ids = {delivery.file: _event_id(delivery) for delivery in deliveries}
        events = await self._wait_settled(event_ids.values())
        return [
            PublishedRun(file, events[event_id], await self._is_replaced(events[event_id]), event_id in known)
            for file, event_id in event_ids.items()
        ]

    async def _wait_settled(self, event_ids: Collection[str]) -> dict[str, Event]:
        """Each event once it is terminal. Raises RunsNotHandled when that takes too long."""
        ends = time.monotonic() + TERMINAL_SECONDS_MAX
        columns = (TextColumn("learning  "), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as progress:
            bar = progress.add_task("learning", total=len(event_ids))
            while time.monotonic() < ends:
                settled = {event.event_id: event for event in await self._find_settled() if event.event_id in event_ids}
                progress.update(bar, completed=len(settled))
                if len(settled) == len(event_ids):
                    return settled
                await asyncio.sleep(POLL_SECONDS)
        raise RunsNotHandled(
            f"some runs did not come to an end within {TERMINAL_SECONDS_MAX:g} s: "
            f"see {self._machine.data}/logs/lorebus.log"
        )

    async def _find_settled(self) -> list[Event]:
        events = await find_events(self._engine, TENANT, status=None, limit=EVENTS_MAX)
        return [event for event in events if event.terminal_at]

    async def _is_replaced(self, event: Event) -> bool:
        """Did another run's lesson about the same thing take its place?"""
        if not event.item_ids:
            return False
        reply = await self._memory.explain(str(event.item_ids[0]), deadline_seconds=RECALL_SECONDS)
        return reply.lesson is not None and reply.lesson.status == "superseded"

    async def _ask_question(self, question: ExampleQuestion) -> tuple[ExampleQuestion, RecallReply]:
        started = time.monotonic()
        reply = await self._recall(question.query, question.repository, question.agent)
        view.show_answer(question, reply, time.monotonic() - started)
        return question, reply

    async def _recall(self, query: str, repository: str, agent: Agent) -> RecallReply:
        """Asked again where a machine that has just started is too slow: a person would do that, too."""
        reply = RecallReply.empty()
        for _ in range(RECALL_TRIES):
            reply = await self._memory.recall(
                query, repository=repository, agent=agent, deadline_seconds=RECALL_SECONDS
            )
            if not reply.degraded:
                break
        return reply

    async def _try_attack(self) -> tuple[Event, RecallReply]:
        """What becomes of the hostile run, and what the next agent there is told."""
        published = await self._memory.publish_run(hostile.HOSTILE_RUN)
        events = await self._wait_settled([published.event_id])
        recalled = await self._recall(hostile.QUESTION, hostile.REPOSITORY, "ci_fixer")
        return events[published.event_id], recalled


def _event_id(delivery: Delivery) -> str:
    if delivery.published is None:
        raise RunsNotHandled(f"{delivery.file}: not published: {delivery.error}")
    return delivery.published.event_id
