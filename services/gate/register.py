"""The stored patterns as values: a change is a function from what is stored to what shall be stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lorebus.errors import LorebusError

from services.gate.patterns import Pattern
from services.gate.rules import name_set
from services.gate.trial import Fault, find_faults, part_usable

PATTERNS_MAX = 500

Action = Literal["added", "changed", "enabled", "disabled", "removed"]


class ChangeRefused(LorebusError):
    """The pattern set cannot be changed like this; the text says why and what helps."""


@dataclass(frozen=True, slots=True)
class Registered:
    pattern: Pattern
    is_built_in: bool = False
    is_active: bool = True


Register = Mapping[str, Registered]
"""By label."""


@dataclass(frozen=True, slots=True)
class Difference:
    label: str
    action: Action
    before: Registered | None
    after: Registered | None


def with_added(register: Register, patterns: Sequence[Pattern]) -> Register:
    """Raises ChangeRefused for a label that is taken, and for too many."""
    if taken := [pattern.label for pattern in patterns if pattern.label in register]:
        raise ChangeRefused(f"there is a pattern {taken[0]} already: choose another label, or remove that one first")
    after = {**register, **{pattern.label: Registered(pattern) for pattern in patterns}}
    if len(after) > PATTERNS_MAX:
        raise ChangeRefused(f"a set has at most {PATTERNS_MAX} patterns: remove some first")
    return after


def with_activity(register: Register, label: str, is_active: bool) -> Register:
    """Raises ChangeRefused for a label that is not there."""
    return {**register, label: replace(_get(register, label), is_active=is_active)}


def without(register: Register, label: str) -> Register:
    """Raises ChangeRefused for one that is built in, or not there."""
    if _get(register, label).is_built_in:
        raise ChangeRefused(f"{label} is built in and cannot be removed: disable it")
    return {name: entry for name, entry in register.items() if name != label}


def with_built_in(register: Register, patterns: Sequence[Pattern]) -> Register:
    """The built-in patterns of this version in place of those of another; one that was disabled stays so.

    Where an administrator's pattern has the label of one, theirs stays.
    """
    added = {label: entry for label, entry in register.items() if not entry.is_built_in}
    was_active = {label: entry.is_active for label, entry in register.items()}
    built_in = {new.label: Registered(new, True, was_active.get(new.label, True)) for new in patterns}
    return built_in | added


def _get(register: Register, label: str) -> Registered:
    if label not in register:
        raise ChangeRefused(f"there is no pattern {label}: `lorebus patterns list` shows all")
    return register[label]


def active_patterns(register: Register) -> list[Pattern]:
    """By label."""
    return [register[label].pattern for label in sorted(register) if register[label].is_active]


def name_register(register: Register) -> str:
    """The name of the set that gates make of it: of what is active and compiles."""
    return name_set(part_usable(active_patterns(register))[0])


def find_new_faults(before: Register, after: Register) -> list[Fault]:
    """What the change makes wrong: a set that was bad before may be mended step by step."""
    faults = find_faults(active_patterns(after))
    known = set(find_faults(active_patterns(before))) if faults else set[Fault]()
    return [fault for fault in faults if fault not in known]


def find_differences(before: Register, after: Register) -> list[Difference]:
    """By label, so that two who change at once write in one order."""
    labels = sorted(before.keys() | after.keys())
    pairs = [(label, before.get(label), after.get(label)) for label in labels]
    return [Difference(label, _action(old, new), old, new) for label, old, new in pairs if old != new]


def _action(before: Registered | None, after: Registered | None) -> Action:
    if before is None:
        return "added"
    if after is None:
        return "removed"
    if before.is_active == after.is_active:
        return "changed"
    return "enabled" if after.is_active else "disabled"
