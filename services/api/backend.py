"""The other services, as this one asks them: over the bus, in the way every agent does."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

import structlog
from lorebus.asking import Unanswered
from lorebus.connection import Connection
from lorebus.contracts.memory import DeleteMemory, SaveReply, WriteEntry
from lorebus.contracts.recall import RecallReply
from lorebus.contracts.subjects import MEMORY_DELETE, MEMORY_SAVE, subject_for
from lorebus.errors import EventNotAcknowledged, LorebusError
from lorebus.insisting import insist
from lorebus.patience import Patience
from lorebus.recalling import ask_recall
from lorebus.sending import Parcel, build_message_id, send

from services.api.store import ApiStore

_log = structlog.get_logger("api")

SAVES_AT_ONCE_MAX = 8
"""More wait here: all at once, each would wait longer for the writer than it is asked anew."""
IDS_AT_ONCE_MAX = 1_000
SEND_SECONDS = 5.0
GONE_SECONDS_MAX = 5.0
LOOK_SECONDS = 0.02


class BackendUnavailable(LorebusError):
    """A part of the memory did not answer; the text names it."""


class Backend:
    def __init__(self, connection: Connection, store: ApiStore, *, save_seconds: float, recall_seconds: float) -> None:
        self._connection = connection
        self._store = store
        self._save_seconds = save_seconds
        self._recall_seconds = recall_seconds
        self._slots = asyncio.Semaphore(SAVES_AT_ONCE_MAX)

    @property
    def is_up(self) -> bool:
        return self._connection.is_up

    async def save(self, tenant: str, entry: WriteEntry) -> SaveReply:
        """Asks again under the same event id while time can cure the answer. Raises BackendUnavailable."""
        body = entry.model_dump_json(by_alias=True, exclude_none=True).encode()
        subject = subject_for(MEMORY_SAVE, tenant)
        patience = Patience(self._save_seconds)
        try:
            async with asyncio.timeout(patience.left_seconds):
                await self._slots.acquire()
        except TimeoutError:
            raise BackendUnavailable("too much is being saved") from None
        try:
            return await insist(self._connection, subject, body, SaveReply, patience.left_seconds)
        except Unanswered as silence:
            raise BackendUnavailable(f"the writer did not answer ({silence.reason})") from silence
        finally:
            self._slots.release()

    async def recall(self, tenant: str, fields: Mapping[str, Any]) -> RecallReply:
        """Raises BackendUnavailable for an answer that is empty because something is down."""
        timed = {**fields, "deadline_ms": round(self._recall_seconds * 1000)}
        reply = await ask_recall(self._connection, tenant, timed)
        if reply.degraded and not reply.items:
            raise BackendUnavailable(f"recall is degraded ({reply.reason})")
        return reply

    async def delete(self, tenant: str, ids: Sequence[UUID], actor: str) -> None:
        """Has entries forgotten, and waits for a moment until they are gone. Raises BackendUnavailable."""
        for start in range(0, len(ids), IDS_AT_ONCE_MAX):
            await self._send_delete(tenant, ids[start : start + IDS_AT_ONCE_MAX], actor)
        try:
            async with asyncio.timeout(GONE_SECONDS_MAX):
                while await self._store.count_entries(ids):  # noqa: ASYNC110 - rows tell nobody that they went
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            # The stream holds the command, so they will go.
            _log.warning("api.deletion_pending", count=len(ids))

    async def _send_delete(self, tenant: str, ids: Sequence[UUID], actor: str) -> None:
        command = DeleteMemory(event_id=str(uuid4()), ids=list(ids), actor=actor, reason="forgotten by its user")
        body = command.model_dump_json(by_alias=True, exclude_none=True).encode()
        message_id = build_message_id(tenant, command.event_id, body)
        parcel = Parcel("deletion", subject_for(MEMORY_DELETE, tenant), command.event_id, body, message_id)
        try:
            await send(self._connection, parcel, SEND_SECONDS)
        except EventNotAcknowledged as error:
            raise BackendUnavailable("the bus did not take the deletion") from error
