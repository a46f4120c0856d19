"""Which of two lessons about the same thing stands: decided by their evidence and their tiers alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True)
class Rival:
    """A lesson about the same thing: the new one, or an active one near it."""

    id: UUID
    evidence_at: datetime
    event_id: str
    origin_tier: int

    @property
    def age_order(self) -> tuple[datetime, str]:
        return self.evidence_at, self.event_id


@dataclass(frozen=True)
class Supersession:
    """Which active lessons the new one replaces, and which one replaces it, if any."""

    replaced: tuple[UUID, ...] = ()
    replaced_by: UUID | None = None


def supersede(new: Rival, near: Sequence[Rival]) -> Supersession:
    """Newer evidence replaces older, whatever the order of arrival; a lower tier never replaces a higher."""
    newer = [rival for rival in near if rival.age_order > new.age_order and rival.origin_tier >= new.origin_tier]
    older = [rival for rival in near if rival.age_order < new.age_order and rival.origin_tier <= new.origin_tier]
    if newer:
        return Supersession(replaced_by=max(newer, key=lambda rival: rival.age_order).id)
    return Supersession(replaced=tuple(sorted(rival.id for rival in older)))
