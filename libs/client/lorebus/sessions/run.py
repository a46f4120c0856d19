"""One run of an agent, whose memory session ends when the run does, however it ends (spec 2.1)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Self

from lorebus.sessions.guard import CALL_SECONDS, Guard
from lorebus.sessions.provider import Memory
from lorebus.sessions.records import Metadata
from lorebus.sessions.session import MemorySession

KeepSessionId = Callable[[str], Awaitable[object]]
"""Stores the id with the run: `agent_runs.memory_session_id`, nullable, 128 characters of the backend's choice."""


@dataclass(frozen=True, slots=True)
class RunDetails:
    """What a session tells of the run that opened it."""

    run_id: str
    agent_id: str
    agent_name: str
    trigger_kind: str
    task_id: str | None = None
    chat_message_id: str | None = None

    @property
    def metadata(self) -> Metadata:
        named = {
            "runId": self.run_id,
            "agentId": self.agent_id,
            "agentName": self.agent_name,
            "triggerKind": self.trigger_kind,
            "taskId": self.task_id,
            "chatMessageId": self.chat_message_id,
        }
        return {name: value for name, value in named.items() if value is not None}


class AgentRun:
    """Enter it after the budget check and before the prompt is put together:

        memory = facade.bind(Caller(user_id, work_id))
        async with AgentRun(memory, details, keep_session_id) as run:
            prompt += (await run.session.recall(task)).text

    Leaving closes the session on completed, failed and cancelled alike. A run without such a place calls `open` and
    `close` itself; `close` may come twice. A process that dies leaves its session to the service, which closes those
    that stay idle. Nothing here raises for the memory's sake.
    """

    def __init__(
        self,
        memory: Memory | None,
        details: RunDetails,
        keep_session_id: KeepSessionId,
        *,
        project_id: str | None = None,
        recalls: bool = True,
        timeout_seconds: float = CALL_SECONDS,
    ) -> None:
        self.session = MemorySession(
            memory,
            project_id=project_id,
            metadata=details.metadata,
            recalls=recalls,
            timeout_seconds=timeout_seconds,
        )
        self._keep_session_id = keep_session_id
        self._guard = Guard(timeout_seconds)

    async def __aenter__(self) -> Self:
        try:
            await self.open()
        except BaseException:
            # Cancelled on the way in: nobody will leave what was not entered.
            await self.close()
            raise
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    @property
    def memory_session_id(self) -> str | None:
        return self.session.id

    async def open(self) -> None:
        await self.session.open()
        session_id = self.session.id
        if session_id is not None:
            # Where it cannot be kept, the session is used and closed all the same.
            await self._guard.attempt("keepSessionId", object, lambda: self._keep_session_id(session_id))

    async def close(self) -> None:
        await self.session.close()
