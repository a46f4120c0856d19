"""The HTTP service with a broken promise: `python hasty_api.py` answers a save first and stores it afterwards.

Run as a process of its own by test_session_kills, which shows with it that it would notice.
"""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import services.api.app
from libs.common.domain.memory import item_id_for
from libs.common.run import serve
from services.api.rules import Record
from services.api.service import MemoryService, NewEntry


class HastyMemory(MemoryService):
    """The mutant: what is acknowledged before it is stored is lost when the process dies in between."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._storing: set[asyncio.Task[Record]] = set()

    async def save(self, tenant: str, new: NewEntry) -> Record:
        event_id = str(uuid4())
        self._storing.add(asyncio.create_task(super().save(tenant, replace(new, event_id=event_id))))
        id_ = str(item_id_for(tenant, event_id))
        return Record(id_, new.content, new.tags, new.metadata or {}, new.session_id, new.project, datetime.now(UTC))


if __name__ == "__main__":
    services.api.app.MemoryService = HastyMemory
    asyncio.run(serve([services.api.app.PROGRAM]))
