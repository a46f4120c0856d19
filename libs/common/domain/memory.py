"""A memory's identity and the words of its life, shared by everyone who writes or reads one."""

import hashlib
from collections.abc import Iterable
from uuid import UUID, uuid5

from lorebus.contracts.subjects import MEMORY_WRITE, RUN_FINISHED

_NAMESPACE = UUID("6f1d3c52-6a0e-5d53-9c1c-7f6a3f0f4b1e")

_KEYED = frozenset({MEMORY_WRITE})
"""Events that make memories, beside finished runs."""

LOW_CONFIDENCE_BELOW = 0.5
"""Recalled with a label (seed section 2)."""

TIER_SYSTEM_EVIDENCE = 2
TIER_AGENT = 1
TIER_OUTSIDE = 0
"""How far a memory's origin is trusted, set by code when it is written; 3 is a person with rights to manage."""


def item_id_for(tenant: str, event_id: str, ordinal: int = 0) -> UUID:
    """The same event always makes the same memory, however often it is handled."""
    return uuid5(_NAMESPACE, f"{tenant}/{event_id}/{ordinal}")


def event_key(schema_name: str, event_id: str) -> str:
    """An event among all kinds of events of a tenant; each kind has ids of its own."""
    return event_id if schema_name == RUN_FINISHED else f"{schema_name}:{event_id}"


def event_of(key: str) -> tuple[str, str]:
    """The schema and the event id that this key stands for."""
    schema_name, colon, event_id = key.partition(":")
    return (schema_name, event_id) if colon and schema_name in _KEYED else (RUN_FINISHED, key)


def screened_text(summary: str, rationale: str) -> str:
    """What the gate judges of a memory: both texts as one, so that a payload split over them is seen."""
    return f"{summary}\n\n{rationale}"


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def is_unverified(tier: int) -> bool:
    """Text of somebody whom nothing vouches for: recalled with a label."""
    return tier <= TIER_OUTSIDE


def lowest_tier(tiers: Iterable[int]) -> int:
    """Of a memory made from others: no more than the least of them. Raises ValueError for none."""
    return min(tiers)


def is_low_confidence(confidence: float | None) -> bool:
    return confidence is not None and confidence < LOW_CONFIDENCE_BELOW
