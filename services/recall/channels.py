"""What other channels of the team remember: places that the own channel leaves free are filled with it.

Whose a channel is and whether it is private stands in the same statement as the search, so that a change counts at the
next read. A channel that nobody registered yet is whose the question says. Nothing is read across organizations.
"""

import asyncio
from typing import Any, cast

import asyncpg
import structlog
from lorebus.contracts.recall import RecallRequest
from pgvector import HalfVector

from libs.common.database import outages_as_store_unavailable
from libs.common.errors import StoreUnavailable
from services.recall.limits import Limits
from services.recall.rules import Found, bare_bars, bars_of
from services.recall.store import Question

_log = structlog.get_logger("recall")

SIMILARITY_MIN = 0.75
"""Of another channel's note at least, in terms of the setting (spec 9)."""

_ELSEWHERE = """
with own as (
    select org_id, team_id from channels where tenant = $1 and key = $2
), asker as (
    select org_id, team_id from own union all select $3::text, $4::text where not exists (select from own)
), sources as (
    select scopes.id
    from asker
    join channels on channels.tenant = $1 and channels.team_id = asker.team_id
        and channels.org_id is not distinct from asker.org_id
    join scopes on scopes.tenant = $1 and scopes.kind = 'channel-memory' and scopes.key = channels.key
    where channels.key <> $2 and channels.is_active and not channels.is_private
), scanned as (
    select item_id, scope_id, origin_tier as tier, -(embedding <#> $5) + 0 as similarity
    from memory_vectors
    where scope_id in (select id from sources) and model_id = $6 and active and origin_tier >= $7
    offset 0
), chosen as (
    select * from scanned where similarity >= $8 order by similarity desc, tier desc, item_id limit $9
)
select id, summary, failure_type, confidence, created_at, run_id, pattern_set, similarity, 0::float8 as coverage, tier,
    variant_group, finding_set, finding_patterns, true as from_other_channel
from chosen cross join lateral (
    select id, summary, failure_type, confidence, created_at, run_id, pattern_set, variant_group
    from memory_items where id = item_id and tenant = $1 and memory_items.scope_id = chosen.scope_id limit 1
) as item
left join lateral (
    select pattern_set as finding_set, patterns as finding_patterns
    from gate_findings where gate_findings.item_id = id and tenant = $1
) as finding on true
order by similarity desc, tier desc, item_id
"""


class OtherChannels:
    def __init__(self, pool: asyncpg.Pool, timeout_seconds: float) -> None:
        self._pool = pool
        self._timeout_seconds = timeout_seconds

    async def find(self, request: RecallRequest, question: Question, limits: Limits, places: int) -> list[Found]:
        """At most so many, the nearest first; with the vector that the own channel was asked with. Never fails."""
        values = (
            question.scope.tenant,
            question.scope.key,
            request.org_id,
            request.team_id,
            HalfVector(question.vector),
            question.model_id,
            question.tier_min,
            find_cosine_min(question, limits),
            places,
        )
        try:
            with outages_as_store_unavailable():
                async with asyncio.timeout(self._timeout_seconds):
                    rows = cast("list[dict[str, Any]]", await self._pool.fetch(_ELSEWHERE, *values))
        except StoreUnavailable as error:
            _log.warning("recall.other_channels_unavailable", reason=str(error))
            return []
        return [Found(**row) for row in rows]


def find_cosine_min(question: Question, limits: Limits) -> float:
    """No less than what the own channel's notes have to reach."""
    setting = max(limits.similarity_min, SIMILARITY_MIN)
    bars = bare_bars(setting) if limits.calibration == "cosine" else bars_of(setting, question.background)
    return bars.cosine_min
