"""The client: publish runs, ask for memories, tap facts."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Self

from lorebus.connection import Connection, ConnectionOptions
from lorebus.contracts.envelope import DEFAULT_TENANT
from lorebus.contracts.recall import Agent, ExplainReply, RecallReply, SearchReply
from lorebus.contracts.runs import RunFinished
from lorebus.contracts.subjects import RUN_FINISHED, subject_for
from lorebus.publishing import PATIENCE_SECONDS, Published, publish_run
from lorebus.recalling import ask_explain, ask_recall, ask_search
from lorebus.settings import get_nats_url
from lorebus.tapping import Since, Tap

DEADLINE_SECONDS = 1.0


class Lorebus:
    """A memory for agents, reached over NATS.

    Entering it neither waits nor fails: a bus that is down is connected to in the background, and until
    then questions are answered empty with `degraded`.

        async with Lorebus() as memory:
            reply = await memory.recall("pytest cannot import cv2", repository="acme/vision")
            prompt += reply.block
    """

    def __init__(
        self,
        url: str | None = None,
        tenant: str = DEFAULT_TENANT,
        *,
        name: str = "lorebus",
        credentials: Path | None = None,
        inbox_prefix: str = "_INBOX",
    ) -> None:
        subject_for(RUN_FINISHED, tenant)  # refuses what cannot be a tenant
        self.tenant = tenant
        self.connection = Connection(ConnectionOptions(get_nats_url(url), name, credentials, inbox_prefix))

    async def __aenter__(self) -> Self:
        self.connection.open()
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.connection.close()

    async def wait_connected(self, timeout_seconds: float) -> bool:
        """Is the bus there, within so long? Nothing needs this but a person who wants to know."""
        return await self.connection.wait_up(timeout_seconds)

    async def publish_run(
        self, run: RunFinished | Mapping[str, Any], *, patience_seconds: float = PATIENCE_SECONDS
    ) -> Published:
        """Hands a finished run to the bus and returns once it is stored.

        Raises InvalidMessage when it does not fit the contract, EventNotAcknowledged when the bus did not
        confirm it in time: then publish the same run again, it counts once.
        """
        return await publish_run(self.connection, self.tenant, run, patience_seconds)

    async def recall(
        self,
        query: str,
        *,
        repository: str | None = None,
        channel: str | None = None,
        project: str | None = None,
        limit: int = 5,
        similarity_min: float | None = None,
        run_id: str | None = None,
        agent: Agent | None = None,
        team_id: str | None = None,
        org_id: str | None = None,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> RecallReply:
        """The memories of one repository, channel or project that fit the query; one keyword a field of the contract.

        Answers within the deadline, whatever is down: then without items, `degraded` and with a reason.
        Raises InvalidMessage for a wrong argument only.
        """
        fields = {
            "query": query,
            "repository": repository,
            "channel": channel,
            "project": project,
            "limit": limit,
            "similarity_min": similarity_min,
            "run_id": run_id,
            "agent": agent,
            "team_id": team_id,
            "org_id": org_id,
            "deadline_ms": round(deadline_seconds * 1000),
        }
        return await ask_recall(self.connection, self.tenant, fields)

    async def search(
        self, query: str, *, repository: str, limit: int = 5, deadline_seconds: float = DEADLINE_SECONDS
    ) -> SearchReply:
        """Lessons as an agent's tool lists them. Never fails, as recall."""
        fields = {"query": query, "repository": repository, "limit": limit}
        return await ask_search(self.connection, self.tenant, fields, deadline_seconds)

    async def explain(
        self, lesson_id: str, *, repository: str | None = None, deadline_seconds: float = DEADLINE_SECONDS
    ) -> ExplainReply:
        """Where a lesson came from. Never fails, as recall; `lesson` is None where there is none."""
        fields = {"lesson_id": lesson_id, "repository": repository}
        return await ask_explain(self.connection, self.tenant, fields, deadline_seconds)

    def events(self, kinds: Collection[str] = (), since: Since = None) -> Tap:
        """Facts as they happen (contract 2.7), all kinds or these, from now on or `since` a time or an age.

            async for fact in memory.events({"lesson_written"}, since=timedelta(hours=1)):
                ...

        Enter it with `async with` to set its place in the stream before the first read.
        """
        return Tap(self.connection, self.tenant, kinds, since)
