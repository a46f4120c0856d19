"""Which value of a setting holds: the nearest level that has a valid one, else the built-in default (spec 10)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, cast

from libs.common.domain.setting_keys import KEYS, Key, Level, ValueT
from libs.common.errors import SettingRefused


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose setting is asked for; None where nobody of that level owns it."""

    channel: str | None = None
    team: str | None = None
    organization: str | None = None

    def at(self, level: Level) -> str | None:
        return "" if level == "platform" else cast("str | None", getattr(self, level))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value is set: a level, and which channel, team or organization; the platform has no name."""

    level: Level = "platform"
    name: str = ""

    def __post_init__(self) -> None:
        if (self.level == "platform") != (self.name == ""):
            raise SettingRefused(f"name the {self.level}" if self.name == "" else "the platform takes no name")

    def __str__(self) -> str:
        return f"{self.level} {self.name}".rstrip()


NOBODY = Owner()
PLATFORM = Place()


class Address(NamedTuple):
    """A row of the table `settings` within its tenant. Rows may hold any text, also of another version."""

    key: str
    level: str
    name: str


@dataclass(frozen=True, slots=True)
class Stored:
    """What a tenant has set. `faults`: what is stored and counts for nothing, being unknown or out of its range."""

    values: Mapping[Address, object]
    faults: frozenset[Address]


@dataclass(frozen=True, slots=True)
class Resolved(Generic[ValueT]):
    """A value in force. `place` is None for the built-in default."""

    value: ValueT
    place: Place | None = None


def read_stored(rows: Iterable[tuple[Address, object]]) -> Stored:
    values: dict[Address, object] = {}
    faults: set[Address] = set()
    for address, raw in rows:
        value = _read(address, raw)
        if value is None:
            faults.add(address)
        else:
            values[address] = value
    return Stored(values, frozenset(faults))


def _read(address: Address, raw: object) -> object | None:
    key = KEYS.get(address.key)
    is_placed = key is not None and address.level in key.levels and (address.level == "platform") == (not address.name)
    return key.range.read(raw) if key and is_placed else None


def resolve(key: Key[ValueT], stored: Stored, owner: Owner = NOBODY) -> Resolved[ValueT]:
    for level in key.levels:
        name = owner.at(level)
        if name is not None and (value := stored.values.get(Address(key.name, level, name))) is not None:
            return Resolved(cast("ValueT", value), Place(level, name))
    return Resolved(key.default)


def resolve_value(key: Key[ValueT], stored: Stored, owner: Owner = NOBODY) -> ValueT:
    return resolve(key, stored, owner).value
