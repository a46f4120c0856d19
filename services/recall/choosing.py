"""Which of what was found an answer holds: the limit counts lessons, and not how often each of them is told.

Pure. A text that another item says already is left out; a variant of an item comes along with it and takes no place of
its own; one run has no more than its share.
"""

from collections import Counter
from collections.abc import Sequence
from math import ceil
from uuid import UUID

from lorebus.contracts.recall import Scope

from services.recall.rules import Found

RUN_SHARE = 2 / 5
"""Of the places of an answer: one run that wrote much, or was made to, must not be all that an agent reads."""
VARIANTS_MAX = 1
"""Of an item: two of a kind show what differs, more would only fill the prompt."""


def choose_items(found: Sequence[Found], limit: int) -> list[Found]:
    """The first `limit` in their order, with the variants of each. What has no run is not counted by runs."""
    run_items_max = max(1, ceil(limit * RUN_SHARE))
    of_run: Counter[str] = Counter()
    of_group: Counter[UUID] = Counter()
    kept: list[Found] = []
    for item in found:
        if item.run_id is not None:
            of_run[item.run_id] += 1
            if of_run[item.run_id] > run_items_max:
                continue
        group = item.variant_group or item.id
        if of_group[group] == 0 and len(of_group) == limit:
            continue
        of_group[group] += 1
        if of_group[group] <= 1 + VARIANTS_MAX:
            kept.append(item)
    return kept


def drop_repeats(found: Sequence[Found], kind: Scope) -> list[Found]:
    """Of items that say the same the most trusted one, in the place of the first.

    Entries stay: each is its writer's own, known by its id.
    """
    if kind == "agent-memory":
        return list(found)
    told: dict[str, Found] = {}
    for item in found:
        text = _plain(item)
        if text not in told or item.tier > told[text].tier:
            told[text] = item
    return list(told.values())


def fill_up(found: Sequence[Found], others: Sequence[Found]) -> list[Found]:
    """The others behind what was found, without those that say what it says."""
    said = {_plain(item) for item in found}
    return [*found, *(item for item in drop_repeats(others, "channel-memory") if _plain(item) not in said)]


def _plain(item: Found) -> str:
    return " ".join(item.summary.lower().split())


def may_hide_more(found: Sequence[Found], chosen: Sequence[Found]) -> bool:
    """Whether a longer look could bring more: places are free, or a variant stands further down."""
    return len(chosen) < len(found) or any(item.variant_group for item in chosen)


def find_variants(items: Sequence[Found]) -> dict[str, str]:
    """By the id of an item, that of the first of its group."""
    first: dict[UUID, str] = {}
    variants: dict[str, str] = {}
    for item in items:
        if item.variant_group is None:
            continue
        id_ = str(item.id)
        if (head := first.setdefault(item.variant_group, id_)) != id_:
            variants[id_] = head
    return variants
