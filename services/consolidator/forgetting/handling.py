"""What a `memory.delete` does, in one transaction: memories, their copies, tombstones, audit, facts, the event's end.

The audit holds ids and counts, of a person's erasure the person and two counts: a list of what was erased would say
what that person was about. The command itself, which names a person, is erased from its stream as well.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import sqlalchemy as sa
import structlog
from lorebus.contracts.facts.consolidator import MemoriesDeleted
from lorebus.contracts.memory import DeleteMemory
from lorebus.contracts.subjects import MEMORY_DELETE
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.administered_settings import AdministeredSettings
from libs.common.bus.consume import Consumption
from libs.common.bus.relay import Relay
from libs.common.bus.streams import FORGETTER
from libs.common.database import outages_as_store_unavailable
from libs.common.domain.setting_keys import PHYSICAL_ERASURE_DAYS
from libs.common.event_copies import erase_message
from libs.common.forgetting import Forgotten, Targets, forget_items, lock_targets
from libs.common.inbox import Claim, Inbox, Outcome
from libs.common.outbox import insert_events
from libs.common.schema import audit
from libs.common.tombstones import bury
from services.consolidator.forgetting.erasing import Erasing
from services.consolidator.forgetting.targets import count_unattributed, find_events, find_graves, find_targets

_log = structlog.get_logger("consolidator")

FACT_IDS_MAX = 5_000
"""Of one fact: a message of the bus holds about 25,000 ids."""


class Forgetting:
    """memory.delete → targets → walk → one transaction → deleted; then the bus is cleared behind it."""

    def __init__(
        self, engine: AsyncEngine, inbox: Inbox, settings: AdministeredSettings, *, relay: Relay, erasing: Erasing
    ) -> None:
        self._engine = engine
        self._inbox = inbox
        self._settings = settings
        self._relay = relay
        self._erasing = erasing

    def consumption(self) -> Consumption[DeleteMemory]:
        return Consumption(
            service="consolidator",
            subject=MEMORY_DELETE,
            message=DeleteMemory,
            source=FORGETTER,
            handle=self.forget,
        )

    async def forget(self, command: DeleteMemory, claim: Claim) -> None:
        days = await self._settings.get(PHYSICAL_ERASURE_DAYS, claim.receipt.tenant)
        physical_by = datetime.now(UTC).date() + timedelta(days=days)
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                forgotten = await self._forget(connection, command, claim, physical_by)
        self._relay.nudge()
        self._erasing.nudge()
        counts = {"deleted": len(forgotten.deleted), "restored": len(forgotten.restored)}
        _log.info("consolidator.memories_deleted", event_id=command.event_id, **counts)

    async def _forget(
        self, connection: AsyncConnection, command: DeleteMemory, claim: Claim, physical_by: date
    ) -> Forgotten:
        tenant, until = claim.receipt.tenant, claim.receipt.published_at
        ids = await lock_targets(connection, tenant, partial(find_targets, tenant=tenant, command=command))
        await bury(connection, tenant, find_graves(command), until)
        forgotten = await forget_items(connection, tenant, Targets(ids, find_events(command), until))
        await connection.execute(sa.insert(audit).values(build_audit(tenant, command, forgotten)))
        unattributed = await count_unattributed(connection, tenant) if command.person else None
        facts = build_facts(tenant, command.event_id, forgotten, physical_by)
        await insert_events(connection, [fact.model_copy(update={"unattributed": unattributed}) for fact in facts])
        await erase_message(connection, claim.receipt)
        await self._inbox.settle(connection, claim, build_outcome(forgotten))
        return forgotten


def build_outcome(forgotten: Forgotten) -> Outcome:
    if not forgotten.deleted:
        return Outcome("skipped", "nothing to forget")
    return Outcome("written", f"{len(forgotten.deleted)} deleted, {len(forgotten.restored)} restored")


def build_audit(tenant: str, command: DeleteMemory, forgotten: Forgotten) -> dict[str, Any]:
    """The row; never a text of a memory."""
    kind, id_ = _entity(command)
    after: dict[str, Any] = {"deleted_count": len(forgotten.deleted), "restored_count": len(forgotten.restored)}
    if command.person is None:
        after |= {"deleted": _texts(forgotten.deleted), "restored": _texts(forgotten.restored)}
        after |= {"event_id": command.event_id, "reason": command.reason}
    row = {"tenant": tenant, "actor": command.actor, "action": "memory.forget"}
    return row | {"entity_kind": kind, "entity_id": id_, "after": after}


def build_facts(tenant: str, event_id: str, forgotten: Forgotten, physical_by: date) -> list[MemoriesDeleted]:
    """One, or as many as it takes: each id once."""
    parts = max(1, -(-max(len(forgotten.deleted), len(forgotten.restored)) // FACT_IDS_MAX))
    whole = MemoriesDeleted(
        tenant=tenant, event_id=event_id, deleted=[], restored=[], physical_by=physical_by, parts=parts
    )
    return [whole.model_copy(update=_part(forgotten, number)) for number in range(parts)]


def _part(forgotten: Forgotten, number: int) -> dict[str, Any]:
    share = slice(number * FACT_IDS_MAX, (number + 1) * FACT_IDS_MAX)
    deleted, restored = _texts(forgotten.deleted[share]), _texts(forgotten.restored[share])
    return {"deleted": deleted, "restored": restored, "part": number + 1}


def _entity(command: DeleteMemory) -> tuple[str, str]:
    """What the audit row is found by: the one that was named, or the command where several were."""
    named = command.person or command.session_id
    if named is not None:
        return ("person" if command.person else "session"), named
    kind = "memory" if command.ids is not None else "event"
    names = [str(name) for name in (command.ids if command.ids is not None else command.event_ids or [])]
    return kind, names[0] if len(names) == 1 else command.event_id


def _texts(ids: Sequence[UUID]) -> list[str]:
    return list(map(str, ids))
