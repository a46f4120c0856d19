"""The client: publish runs and notes, ask for memories, tap facts."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, Unpack

from lorebus.background import Background
from lorebus.channels import ChatChannel
from lorebus.connection import Connection, ConnectionOptions
from lorebus.consolidating import ConsolidationFields, publish_consolidation
from lorebus.contracts.envelope import DEFAULT_TENANT
from lorebus.contracts.memory import SaveReply
from lorebus.contracts.recall import Agent, ExplainReply, Mode, RecallReply, SearchReply
from lorebus.contracts.runs import RunFinished
from lorebus.contracts.subjects import RUN_FINISHED, subject_for
from lorebus.embedding import EmbeddingFields, publish_embedding
from lorebus.forgetting import ForgetFields, publish_forget
from lorebus.noting import NoteFields, publish_note, save_note
from lorebus.publishing import publish_run
from lorebus.recalling import ask_explain, ask_recall, ask_search
from lorebus.sending import PATIENCE_SECONDS, Published
from lorebus.settings import get_nats_url
from lorebus.tapping import Since, Tap
from lorebus.transcripts import TranscriptFiles

DEADLINE_SECONDS = 1.0
SAVE_SECONDS = 5.0
CLOSE_SECONDS = 1.0
"""How long leaving waits for notes that are still on their way."""


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
        self.background = Background()

    async def __aenter__(self) -> Self:
        self.connection.open()
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.background.close(CLOSE_SECONDS)
        await self.connection.close()

    async def wait_connected(self, timeout_seconds: float) -> bool:
        """Is the bus there, within so long? Nothing needs this but a person who wants to know."""
        return await self.connection.wait_up(timeout_seconds)

    async def publish_run(
        self,
        run: RunFinished | Mapping[str, Any],
        *,
        transcripts: Sequence[TranscriptFiles] = (),
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> Published:
        """Hands a finished run to the bus and returns once it is stored.

        Its transcripts, those in files too, travel inside the message or ahead of it; which of them could not is
        told in `left_out`. The patience is for each message: a part of a transcript, then the run.

        Raises InvalidMessage when it does not fit the contract, EventNotAcknowledged when the bus did not
        confirm it in time: then publish the same run again, it counts once.
        """
        return await publish_run(self.connection, self.tenant, run, transcripts, patience_seconds)

    async def note(self, *, patience_seconds: float = PATIENCE_SECONDS, **note: Unpack[NoteFields]) -> Published:
        """Hands a memory that you worded yourself to the bus and returns once it is stored there.

        It becomes a memory once the gate has cleared it. Raises as `publish_run` does; under an `event_id` of your
        own a note counts once.
        """
        return await publish_note(self.connection, self.tenant, note, patience_seconds)

    async def save_note(self, *, deadline_seconds: float = SAVE_SECONDS, **note: Unpack[NoteFields]) -> SaveReply:
        """As `note`, for a caller that needs the memory's id: the reply holds it, or says why there is none.

        Answers within the deadline, whatever is down; with an `event_id` of your own you can save it again then.
        Raises InvalidMessage for a wrong argument only.
        """
        return await save_note(self.connection, self.tenant, note, deadline_seconds)

    async def forget(self, *, patience_seconds: float = PATIENCE_SECONDS, **command: Unpack[ForgetFields]) -> Published:
        """Asks that memories be forgotten, in every copy; returns once the bus holds the command.

        What came of it is told by `deleted`, under its event id: which memories went, which came back, and by when the
        last bytes are gone from the database's files. Raises as `publish_run` does; safe to repeat.
        """
        return await publish_forget(self.connection, self.tenant, command, patience_seconds)

    async def recall(
        self,
        query: str,
        *,
        repository: str | None = None,
        channel: str | None = None,
        project: str | None = None,
        limit: int | None = None,
        similarity_min: float | None = None,
        min_tier: int | None = None,
        mode: Mode | None = None,
        tokens_max: int | None = None,
        run_id: str | None = None,
        agent: Agent | None = None,
        team_id: str | None = None,
        org_id: str | None = None,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> RecallReply:
        """The memories of one repository, channel or project that fit the query; one keyword a field of the contract.

        Answers within the deadline, whatever is down: then without items, `degraded` and with a reason. With a blank
        query, or without a place to look, the answer is empty at once. `lorebus.queries` makes the query of each agent.
        Raises InvalidMessage for a wrong argument only.
        """
        fields = {
            "query": query,
            "repository": repository,
            "channel": channel,
            "project": project,
            "limit": limit,
            "similarity_min": similarity_min,
            "min_tier": min_tier,
            "mode": mode,
            "tokens_max": tokens_max,
            "run_id": run_id,
            "agent": agent,
            "team_id": team_id,
            "org_id": org_id,
            "deadline_ms": round(deadline_seconds * 1000),
        }
        return await ask_recall(self.connection, self.tenant, fields)

    def channel(self, channel: str, *, org_id: str | None = None, team_id: str | None = None) -> ChatChannel:
        """A chat channel: what it remembers, what is told it, what is set for it. Asks and sends nothing yet."""
        return ChatChannel(self.connection, self.tenant, channel, org_id, team_id)

    async def search(
        self, query: str, *, repository: str, limit: int | None = None, deadline_seconds: float = DEADLINE_SECONDS
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

    async def request_consolidation(
        self, *, patience_seconds: float = PATIENCE_SECONDS, **request: Unpack[ConsolidationFields]
    ) -> Published:
        """Asks that like memories be merged: of a repository, of a channel, or else of every repository.

        What came of it is told by `lessons_consolidated`, for every repository by `consolidation_dispatched` first.
        Raises as `publish_run` does; under an `event_id` of your own a request counts once.
        """
        return await publish_consolidation(self.connection, self.tenant, request, patience_seconds)

    async def change_embedding(
        self, *, patience_seconds: float = PATIENCE_SECONDS, **changed: Unpack[EmbeddingFields]
    ) -> Published:
        """Tells that another model is to embed the memories; with `reembed` it also starts, or resumes, the work.

        What came of it is told by `reembed_started`, `reembed_refused` or `reembed_progress`. Raises as `publish_run`
        does; under an `event_id` of your own it counts once.
        """
        return await publish_embedding(self.connection, self.tenant, changed, patience_seconds)

    def events(self, kinds: Collection[str] = (), since: Since = None) -> Tap:
        """Facts as they happen (contract 2.7), all kinds or these, from now on or `since` a time or an age.

            async for fact in memory.events({"lesson_written"}, since=timedelta(hours=1)):
                ...

        Enter it with `async with` to set its place in the stream before the first read.
        """
        return Tap(self.connection, self.tenant, kinds, since)
