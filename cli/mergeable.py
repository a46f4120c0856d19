"""What consolidation would merge, read from the database; and the switch that keeps the schedule from one."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from lorebus.contracts.subjects import CONSOLIDATION_REQUESTED, subject_for

from cli.stores import open_database
from libs.common.administered_settings import AdministeredSettings
from libs.common.inbox import Inbox
from services.consolidator.planning import Bars, Plan, Planning
from services.consolidator.rules import Scope, choose_enabled
from services.consolidator.slots import set_enabled
from services.consolidator.store import ConsolidatorStore

__all__ = ["Bars", "Found", "Place", "find_mergeable", "switch_schedule"]

SECONDS_MAX = 600
LEASE_SECONDS = 15.0
"""Nothing is claimed here."""


class Place(TypedDict):
    """Both None: every repository that the schedule would merge."""

    repository: str | None
    channel: str | None


@dataclass(frozen=True, slots=True)
class Found:
    scope: Scope
    plan: Plan


async def find_mergeable(data: Path, tenant: str, place: Place, bars: Bars) -> list[Found]:
    """One a place; a place that nobody has written to is none."""
    subject_for(CONSOLIDATION_REQUESTED, tenant)  # refuses what cannot be a tenant
    async with open_database(data) as engine, asyncio.timeout(SECONDS_MAX):
        settings = AdministeredSettings(engine)
        store = ConsolidatorStore(engine, Inbox(engine, LEASE_SECONDS))
        measure = await store.find_measure()
        if measure is None:
            return []
        planning = Planning(store, settings)
        scopes = await _find_scopes(store, settings, tenant, place)
        return [Found(scope, await planning.find_plan(scope, measure, bars)) for scope in scopes]


async def _find_scopes(
    store: ConsolidatorStore, settings: AdministeredSettings, tenant: str, place: Place
) -> list[Scope]:
    if place["repository"]:
        found = await store.find_scope(tenant, "swe-lessons", place["repository"])
    elif place["channel"]:
        found = await store.find_scope(tenant, "channel-memory", place["channel"])
    else:
        return choose_enabled(await store.find_repositories(tenant), await settings.get_stored(tenant))
    return [found] if found else []


async def switch_schedule(data: Path, tenant: str, repository: str, *, is_enabled: bool, actor: str) -> None:
    """Raises RepositoryUnknown."""
    subject_for(CONSOLIDATION_REQUESTED, tenant)
    async with open_database(data) as engine, asyncio.timeout(SECONDS_MAX):
        await set_enabled(engine, tenant, repository, is_enabled=is_enabled, actor=actor)
