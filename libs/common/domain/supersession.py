"""Which of two lessons about the same thing stands, and which two tell of different things though they are near.

Two rules say what is about the same thing. `cosine` is the seed's: whatever is near enough. `mutual`: the same text,
or each other's nearest in the scope, near enough by the model's own scale, and no variants. Measured, a bare threshold
replaces opposites and other versions and misses the same lesson in other words (retrieval-quality 1 and 4). Which one
of two stands is decided by their evidence and their tiers alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from libs.common.domain.calibration import Background
from libs.common.domain.likeness import is_variant, plain_text

Rule = Literal["mutual", "cosine"]

SETTING_DEFAULT = 0.92
Z_MUTUAL = 6.0
"""How far the default setting stands off the background under the rule `mutual`, in standard deviations.

On real runs no lesson of another cause is replaced from 3 on; below 6 a third of the variants are none.
"""
TIE = 1e-4
"""Half precision: what is no further off is as near."""


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
class Nearness:
    """What is near enough, as a cosine. 1: nothing is."""

    rule: Rule
    similarity_min: float

    @property
    def is_off(self) -> bool:
        return self.similarity_min >= 1


NOTHING_IS_NEAR = Nearness("cosine", 1.0)


@dataclass(frozen=True)
class Neighbour:
    """An active lesson that is near a new one."""

    rival: Rival
    summary: str
    similarity: float
    variant_group: UUID | None = None


@dataclass(frozen=True)
class Relations:
    """What a new lesson is to those near it."""

    rivals: Sequence[Rival] = ()
    variant_of: UUID | None = None
    variant_group: UUID | None = None
    """Lessons that differ in little, and in that alone: a group is named by the id of its first."""


@dataclass(frozen=True)
class Supersession:
    """Which active lessons the new one replaces, and which one replaces it, if any."""

    replaced: tuple[UUID, ...] = ()
    replaced_by: UUID | None = None
    confirmed: tuple[UUID, ...] = ()
    """Those it says again and may not replace: they count as fresh from now on."""
    variant_of: UUID | None = None
    variant_group: UUID | None = None


def nearness_of(rule: Rule, setting: float, background: Background) -> Nearness:
    """`background`: of the new lesson's own cosines. Under both rules 1 turns it off, and less lets more be near."""
    if rule == "cosine" or setting >= 1:
        return Nearness("cosine", setting)
    return Nearness(rule, min(background.mean + Z_MUTUAL * setting / SETTING_DEFAULT * background.deviation, 1 - TIE))


def relate_twins(summary: str, near: Sequence[Neighbour]) -> Relations | None:
    """To those that say the same, letter by letter but for blanks, case and places in a file; None: nobody does."""
    twins = [one for one in near if plain_text(one.summary) == plain_text(summary)]
    if not twins:
        return None
    groups = [one.variant_group for one in twins if one.variant_group]
    return Relations([one.rival for one in twins], variant_group=groups[0] if groups else None)


def relate_nearest(summary: str, nearest: Neighbour, similarity_elsewhere: float) -> Relations:
    """To the nearest, which is near enough; `similarity_elsewhere`: how near that one is to any but its variants."""
    if similarity_elsewhere > nearest.similarity + TIE:
        return Relations()
    if is_variant(summary, nearest.summary):
        group = nearest.variant_group or nearest.rival.id
        return Relations(variant_of=nearest.rival.id, variant_group=group)
    return Relations([nearest.rival], variant_group=nearest.variant_group)


def supersede(new: Rival, near: Sequence[Rival]) -> Supersession:
    """Newer evidence replaces older, whatever the order of arrival; a lower tier never replaces a higher."""
    newer = [rival for rival in near if rival.age_order > new.age_order and rival.origin_tier >= new.origin_tier]
    older = [rival for rival in near if rival.age_order < new.age_order and rival.origin_tier <= new.origin_tier]
    trusted = [rival for rival in near if rival.age_order < new.age_order and rival.origin_tier > new.origin_tier]
    confirmed = tuple(sorted(rival.id for rival in trusted))
    if newer:
        return Supersession(replaced_by=max(newer, key=lambda rival: rival.age_order).id, confirmed=confirmed)
    return Supersession(replaced=tuple(sorted(rival.id for rival in older)), confirmed=confirmed)
