"""Memories that wait for an administrator: held ones, and stored ones that a later pattern set matches.

A held one is in nobody's way until it is released; then it supersedes, and is superseded, as if it were written now.
Each change is made under the lock of the scope, and in one transaction with its audit row, which holds no text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import numpy as np
import sqlalchemy as sa
from lorebus.contracts.facts.fact import MemoryEvent
from lorebus.contracts.facts.writer import LessonReleased, Superseded
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.active_items import activate
from libs.common.administered_settings import AdministeredSettings
from libs.common.database import lock_scope, outages_as_store_unavailable
from libs.common.domain.calibration import measure_background
from libs.common.domain.setting_cascade import Owner
from libs.common.domain.setting_keys import SUPERSEDE_RULE, SUPERSEDE_THRESHOLD
from libs.common.domain.supersession import Rival, Rule, Supersession, nearness_of
from libs.common.errors import PendingRefused
from libs.common.forgetting import Targets, forget_items, lock_targets
from libs.common.outbox import insert_events
from libs.common.rivals import Newcomer, confirm_items, decide, name_group, replace_items
from libs.common.schema import audit, embedding_models, gate_findings, memory_items, memory_vectors, scopes

UNKNOWN = "no memory with this id waits; `lorebus pending list` shows those that do"
MATCHED = (
    "the gate matches its text ({patterns}), so it would not be recalled: refuse it, or take the pattern out of force"
)


@dataclass(frozen=True, slots=True)
class PendingItem:
    """`matched`: stored and active once, withheld from recall since a later pattern set matches it."""

    id: UUID
    state: Literal["held", "matched"]
    patterns: Sequence[str]
    since: datetime
    repository: str
    tier: int
    run_id: str | None
    written_by: str | None
    summary: str
    rationale: str


@dataclass(frozen=True, slots=True)
class Refused:
    """`deleted`: the memory and what was merged from it; `restored`: what they had hidden."""

    deleted: Sequence[UUID]
    restored: Sequence[UUID]


@dataclass(frozen=True, slots=True)
class _Waiting:
    """What a decision about a pending memory needs; never its text."""

    id: UUID
    tenant: str
    scope_id: int
    repository: str
    owner: Owner
    rival: Rival
    is_held: bool
    held_patterns: Sequence[str]
    found_patterns: Sequence[str]


async def find_pending(engine: AsyncEngine, tenant: str, limit: int) -> list[PendingItem]:
    """Those that have waited longest first."""
    items, findings = memory_items.c, gate_findings.c
    held = sa.select(items.id).where(items.tenant == tenant, items.held_at.is_not(None))
    found = sa.select(findings.item_id).where(findings.tenant == tenant)
    since = sa.func.coalesce(items.held_at, findings.found_at)
    query = (
        sa.select(
            items.id,
            sa.case((items.held_at.is_not(None), "held"), else_="matched").label("state"),
            sa.func.coalesce(findings.patterns, items.held_patterns).label("patterns"),
            since.label("since"),
            scopes.c.key.label("repository"),
            items.origin_tier.label("tier"),
            items.run_id,
            items.agent_key.label("written_by"),
            items.summary,
            items.rationale,
        )
        .join(scopes, scopes.c.id == items.scope_id)
        .outerjoin(gate_findings, findings.item_id == items.id)
        .where(items.id.in_(held.union(found)))
        .order_by(since, items.id)
        .limit(limit)
    )
    async with engine.connect() as connection:
        return [PendingItem(**row) for row in (await connection.execute(query)).mappings()]


class Pending:
    """What administrators decide about a memory that waits. Every method raises PendingRefused, StoreUnavailable."""

    def __init__(self, engine: AsyncEngine, settings: AdministeredSettings) -> None:
        self._engine = engine
        self._settings = settings

    async def release(self, tenant: str, item_id: UUID, *, actor: str) -> Supersession:
        """Makes a held memory active, at the tier that it has, unless a newer one replaces it at once."""
        rule, setting = await self._get_rule(tenant, item_id)
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                waiting = await _lock_waiting(connection, tenant, item_id)
                if not waiting.is_held or waiting.found_patterns:
                    raise PendingRefused(MATCHED.format(patterns=", ".join(waiting.found_patterns)))
                decision = await _decide(connection, waiting, rule, setting)
                await _release(connection, waiting, decision)
                await _insert_audit(connection, waiting, "memory.release", _released(actor, decision), actor)
                await insert_events(connection, _facts(waiting, decision))
        return decision

    async def refuse(self, tenant: str, item_id: UUID, *, actor: str) -> Refused:
        """Forgets a pending memory for good, in every copy; what it had replaced is active again."""

        async def find_target(_connection: AsyncConnection) -> list[UUID]:
            return [item_id]

        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                ids = await lock_targets(connection, tenant, find_target)
                waiting = await _get_waiting(connection, tenant, item_id)
                forgotten = await forget_items(connection, tenant, Targets(ids))
                after: dict[str, Any] = {"refused_by": actor, "deleted": list(map(str, forgotten.deleted))}
                after["restored"] = list(map(str, forgotten.restored))
                await _insert_audit(connection, waiting, "memory.refuse", after, actor)
        return Refused(forgotten.deleted, forgotten.restored)

    async def _get_rule(self, tenant: str, item_id: UUID) -> tuple[Rule, float]:
        """What counts as the same thing, as whoever owns the repository has set it."""
        with outages_as_store_unavailable():
            async with self._engine.connect() as connection:
                waiting = await _get_waiting(connection, tenant, item_id)
        rule = await self._settings.get(SUPERSEDE_RULE, tenant, waiting.owner)
        return rule, await self._settings.get(SUPERSEDE_THRESHOLD, tenant, waiting.owner)


async def _lock_waiting(connection: AsyncConnection, tenant: str, item_id: UUID) -> _Waiting:
    """Under the scope's lock, and looked at again behind it: another administrator may have been faster."""
    await lock_scope(connection, (await _get_waiting(connection, tenant, item_id)).scope_id)
    return await _get_waiting(connection, tenant, item_id)


async def _get_waiting(connection: AsyncConnection, tenant: str, item_id: UUID) -> _Waiting:
    items, findings = memory_items.c, gate_findings.c
    query = (
        sa.select(memory_items, scopes.c.key, scopes.c.team_id, scopes.c.org_id, findings.patterns)
        .join(scopes, scopes.c.id == items.scope_id)
        .outerjoin(gate_findings, findings.item_id == items.id)
        .where(items.tenant == tenant, items.id == item_id)
        .where(sa.or_(items.held_at.is_not(None), findings.item_id.is_not(None)))
    )
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        raise PendingRefused(UNKNOWN)
    return _Waiting(
        id=item_id,
        tenant=tenant,
        scope_id=row.scope_id,
        repository=row.key,
        owner=Owner(team=row.team_id, organization=row.org_id),
        rival=Rival(item_id, row.evidence_at, row.source_event_id, row.origin_tier),
        is_held=row.held_at is not None,
        held_patterns=row.held_patterns,
        found_patterns=row.patterns or (),
    )


async def _decide(connection: AsyncConnection, waiting: _Waiting, rule: Rule, setting: float) -> Supersession:
    """By the vectors of the model that serves."""
    vectors, models = memory_vectors.c, embedding_models.c
    query = (
        sa.select(vectors.model_id, vectors.embedding, models.background, models.dimensions, memory_items.c.summary)
        .join(embedding_models, models.id == vectors.model_id)
        .join(memory_items, memory_items.c.id == vectors.item_id)
        .where(vectors.item_id == waiting.id, models.state == "serving")
    )
    own = (await connection.execute(query)).one_or_none()
    if own is None:
        return Supersession()
    background = np.frombuffer(own.background, np.float32).reshape(-1, own.dimensions)
    nearness = nearness_of(rule, setting, measure_background(own.embedding.to_numpy().astype(np.float32), background))
    newcomer = Newcomer(waiting.scope_id, waiting.rival, own.summary, own.model_id, own.embedding)
    return await decide(connection, newcomer, nearness)


async def _release(connection: AsyncConnection, waiting: _Waiting, decision: Supersession) -> None:
    stamp: dict[str, Any] = {"held_at": None}
    if decision.replaced_by:
        stamp |= {"superseded_at": sa.func.now(), "superseded_by_id": decision.replaced_by}
    stamp["variant_group"] = decision.variant_group
    await connection.execute(sa.update(memory_items).where(memory_items.c.id == waiting.id).values(stamp))
    if not decision.replaced_by:
        await activate(connection, waiting.scope_id, [waiting.id])
    await replace_items(connection, waiting.scope_id, decision.replaced, by=waiting.id)
    await confirm_items(connection, decision.confirmed)
    await name_group(connection, decision)


def _released(actor: str, decision: Supersession) -> dict[str, Any]:
    superseded_by = str(decision.replaced_by) if decision.replaced_by else None
    return {"released_by": actor, "superseded": list(map(str, decision.replaced)), "superseded_by": superseded_by}


async def _insert_audit(
    connection: AsyncConnection, waiting: _Waiting, action: str, after: dict[str, Any], actor: str
) -> None:
    state = "held" if waiting.is_held else "matched"
    patterns = waiting.found_patterns or waiting.held_patterns
    row = {"tenant": waiting.tenant, "actor": actor, "action": action, "entity_kind": "memory"}
    row |= {"entity_id": str(waiting.id), "after": after}
    row |= {"before": {"state": state, "patterns": list(patterns), "repository": waiting.repository}}
    await connection.execute(sa.insert(audit).values(row))


def _facts(waiting: _Waiting, decision: Supersession) -> list[MemoryEvent]:
    about: dict[str, Any] = {"tenant": waiting.tenant, "repository": waiting.repository}
    replaced = list(map(str, decision.replaced))
    facts: list[MemoryEvent] = [LessonReleased(**about, id=str(waiting.id), superseded=replaced)]
    if replaced:
        facts.append(Superseded(**about, ids=replaced, superseded_by=str(waiting.id)))
    if decision.replaced_by:
        facts.append(Superseded(**about, ids=[str(waiting.id)], superseded_by=str(decision.replaced_by)))
    return facts
