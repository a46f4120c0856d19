"""One unit of work with its memory: what it reads and writes stands under one session id.

A session that somebody else opened always wins, and is never closed here. Where none can be opened, the work goes on
without: later calls then carry no session id at all.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

from lorebus.sessions.errors import OperationNotSupported, render_error
from lorebus.sessions.fence import CHARS_PER_TOKEN, TOKENS_DEFAULT, render_block
from lorebus.sessions.guard import CALL_SECONDS, Failed, Guard
from lorebus.sessions.null import NullProvider
from lorebus.sessions.provider import ForgetsEntries, Memory
from lorebus.sessions.records import (
    Context,
    ContextRequest,
    Metadata,
    Observation,
    Record,
    Search,
    SearchResponse,
    Session,
)

log = logging.getLogger("lorebus")

Outcome = Literal["injected", "empty", "no-provider", "failed", "off"]


@dataclass(frozen=True, slots=True)
class PromptBlock:
    """What goes into a prompt, and how it came about. Without a memory, or one that is off or failed, it is empty."""

    outcome: Outcome
    text: str = ""


class MemorySession:
    """No method raises for the memory's sake: each answers empty instead, within `timeout_seconds`.

        async with MemorySession(memory, project_id="shop") as session:
            prompt += (await session.recall("currency of invoices")).text
            await session.save("Prices are stored in cents.", tags=["pricing"])

    `memory` may be None: then nothing is remembered. With a `session_id` of the caller's neither entering nor leaving
    calls the memory. With `recalls` false, `recall` gives nothing (`settings.is_recall_enabled`).
    """

    def __init__(
        self,
        memory: Memory | None,
        *,
        project_id: str | None = None,
        metadata: Metadata | None = None,
        session_id: str | None = None,
        recalls: bool = True,
        timeout_seconds: float = CALL_SECONDS,
    ) -> None:
        self.id = session_id
        """None until it is open, and where it could not be opened."""
        self.project_id = project_id
        self._memory: Memory = memory or NullProvider()
        self._has_memory = memory is not None
        self._metadata = metadata
        self._recalls = recalls
        self._is_own = False
        self._guard = Guard(timeout_seconds)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Once; a session that is there already stays."""
        if self.id is not None or not self._has_memory:
            return
        opened = await self._guard.attempt(
            "openSession",
            Session,
            lambda: self._memory.open_session(project_id=self.project_id, metadata=self._metadata),
        )
        if not isinstance(opened, Failed):
            self.id, self._is_own = opened.id, True

    async def close(self) -> None:
        """Closes what this object opened, once. The id stays, for whoever looks it up afterwards."""
        session_id = self.id
        if session_id is None or not self._is_own:
            return
        # Before the call: an end that comes twice must not close twice.
        self._is_own = False
        await self._guard.attempt(
            "closeSession", object, lambda: self._memory.close_session(session_id, project_id=self.project_id)
        )

    async def save(self, content: str, *, tags: Sequence[str] = (), metadata: Metadata | None = None) -> Record | None:
        """What was stored, or None where it was not."""
        if not self._has_memory:
            return None
        observation = Observation(content, tags, metadata, self.id, self.project_id)
        saved = await self._guard.attempt("saveMemory", Record, lambda: self._memory.save(observation))
        return None if isinstance(saved, Failed) else saved

    async def search(self, query: str, *, limit: int | None = None, tags: Sequence[str] = ()) -> SearchResponse:
        """In the whole project; the session is named so that the backend knows what asked."""
        search = Search(query, limit, tags, self.id, self.project_id)
        found = await self._guard.attempt("searchMemory", SearchResponse, lambda: self._memory.search(search))
        return SearchResponse() if isinstance(found, Failed) else found

    async def build_context(
        self, query: str | None = None, *, purpose: str | None = None, tokens_max: int | None = None
    ) -> Context:
        """Untrusted text; `recall` gives it ready for a prompt."""
        built = await self._attempt_context(query, purpose, tokens_max)
        return Context() if isinstance(built, Failed) else built

    async def recall(
        self, query: str | None = None, *, purpose: str | None = None, tokens_max: int = TOKENS_DEFAULT
    ) -> PromptBlock:
        """The context between fences, cut to the tokens; a note between them where nothing is remembered."""
        if not self._recalls:
            return _tell(PromptBlock("off"))
        if not self._has_memory:
            return _tell(PromptBlock("no-provider"))
        built = await self._attempt_context(query, purpose, tokens_max)
        if isinstance(built, Failed):
            block = PromptBlock("no-provider" if built.is_without_provider else "failed")
            return _tell(block, reason=render_error(built.error))
        outcome: Outcome = "injected" if built.content.strip() else "empty"
        return _tell(PromptBlock(outcome, render_block(built.content, tokens_max)), built.provider or "")

    async def forget(self, entry_id: str) -> bool:
        """Was the memory told to?"""

        async def forget() -> None:
            if not isinstance(self._memory, ForgetsEntries):
                raise OperationNotSupported("deleteEntry", type(self._memory).__name__)
            await self._memory.forget(entry_id, project_id=self.project_id)

        return self._has_memory and not isinstance(await self._guard.attempt("deleteEntry", object, forget), Failed)

    async def _attempt_context(
        self, query: str | None, purpose: str | None, tokens_max: int | None
    ) -> Context | Failed:
        request = ContextRequest(query, purpose, self.id, self.project_id, tokens_max)
        return await self._guard.attempt("buildContext", Context, lambda: self._memory.build_context(request))


def _tell(block: PromptBlock, provider: str = "", reason: str = "") -> PromptBlock:
    log.info(
        "memory-recall: status=%s chars=%d tokens=%d provider=%s reason=%s",
        block.outcome,
        len(block.text),
        len(block.text) // CHARS_PER_TOKEN,
        provider or "-",
        reason or "-",
    )
    return block
