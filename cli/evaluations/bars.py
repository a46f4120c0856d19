"""What a figure must be."""

from dataclasses import dataclass
from typing import Literal

Direction = Literal["at least", "at most"]


@dataclass(frozen=True, slots=True)
class Bar:
    """`limit` is in the unit of the figure; a share's unit is %."""

    name: str
    figure: float
    direction: Direction
    limit: float
    unit: str

    @property
    def holds(self) -> bool:
        return self.figure >= self.limit if self.direction == "at least" else self.figure <= self.limit

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "figure": self.figure,
            "direction": self.direction,
            "limit": self.limit,
            "unit": self.unit,
            "holds": self.holds,
        }
