"""Which messages of a page are read: those after the cursor, of people, with words (spec 9)."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from lorebus.contracts.channels import ChannelMessage


@dataclass(frozen=True, slots=True)
class Page:
    """`cursor`: the newest message that was seen, of whomever; None where there was none."""

    messages: Sequence[ChannelMessage]
    cursor: str | None


def order_of(ts: str) -> Decimal:
    """Numbers of any length: as texts, 9 would stand behind 10."""
    return Decimal(ts)


def choose_messages(messages: Sequence[ChannelMessage], after: str | None, limit: int) -> Page:
    """The first `limit` after the cursor, oldest first; what lies beyond is for the next page."""
    fresh = sorted(
        (one for one in messages if after is None or order_of(one.ts) > order_of(after)),
        key=lambda one: order_of(one.ts),
    )[:limit]
    people = [one for one in fresh if not one.bot and one.text.strip()]
    return Page(people, fresh[-1].ts if fresh else None)
