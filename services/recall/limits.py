"""What holds for a question where it does not say itself: administrators' settings, else what is built in.

Settings that cannot be read cost no recall: then the built-in limits hold, and no lesson is too old.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from lorebus.contracts.recall import Mode, RecallRequest, Scope

from libs.common.administered_settings import AdministeredSettings
from libs.common.domain.calibration import Calibration
from libs.common.domain.setting_cascade import Owner, Stored, read_stored, resolve_value
from libs.common.domain.setting_keys import (
    CHANNEL_CONTEXT_ITEMS,
    CHANNEL_THRESHOLD,
    LESSON_MAX_AGE_DAYS,
    LESSON_RETRIEVAL_CALIBRATION,
    LESSON_RETRIEVAL_LIMIT,
    LESSON_RETRIEVAL_THRESHOLD,
)
from libs.common.errors import StoreUnavailable
from services.recall.rules import DIGEST_ITEMS, ENTRIES_DEFAULT, ScopeName, clamp_limit, created_after, is_listing

_NOTHING_SET = read_stored(())


@dataclass(frozen=True, slots=True)
class Limits:
    """What a question is answered within."""

    items_max: int
    similarity_min: float
    created_after: datetime
    tier_min: int = 0
    mode: Mode = "hybrid"
    calibration: Calibration = "background"


async def find_limits(settings: AdministeredSettings, request: RecallRequest, scope: ScopeName, owner: Owner) -> Limits:
    """`owner` is whose repository it is: lessons age by its setting, whoever asks."""
    try:
        stored = await settings.get_stored(scope.tenant)
    except StoreUnavailable:  # logged where it was looked for
        stored = _NOTHING_SET
    return choose_limits(request, stored, owner, datetime.now(UTC))


def choose_limits(request: RecallRequest, stored: Stored, owner: Owner, now: datetime) -> Limits:
    kind, similarity_min = request.scope_kind, request.similarity_min
    # Only lessons age: other memories are not about code that moves on (spec 6).
    age_days_max = resolve_value(LESSON_MAX_AGE_DAYS, stored, owner) if kind == "swe-lessons" else 0
    calibration = resolve_value(LESSON_RETRIEVAL_CALIBRATION, stored)
    return Limits(
        items_max=clamp_limit(_find_limit(request, stored, owner) if request.limit is None else request.limit, kind),
        similarity_min=_find_similarity(kind, stored, owner) if similarity_min is None else similarity_min,
        created_after=created_after(now, age_days_max),
        tier_min=request.min_tier or 0,
        # The bare cosine is the seed's rule, which knows of nothing but the vector.
        mode=request.mode or ("vector" if calibration == "cosine" else "hybrid"),
        calibration=calibration,
    )


def _find_limit(request: RecallRequest, stored: Stored, owner: Owner) -> int:
    if request.scope_kind == "agent-memory":
        return ENTRIES_DEFAULT
    if request.scope_kind == "swe-lessons":
        return resolve_value(LESSON_RETRIEVAL_LIMIT, stored)
    is_digest = is_listing(request.scope_kind, request.query)
    return DIGEST_ITEMS if is_digest else resolve_value(CHANNEL_CONTEXT_ITEMS, stored, owner)


def _find_similarity(kind: Scope, stored: Stored, owner: Owner) -> float:
    if kind == "channel-memory":
        return resolve_value(CHANNEL_THRESHOLD, stored, owner)
    return resolve_value(LESSON_RETRIEVAL_THRESHOLD, stored)
