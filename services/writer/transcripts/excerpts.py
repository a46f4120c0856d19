"""Texts cut to a length, and a length shared among texts."""

from collections.abc import Sequence

MARK = "…"
"""Stands where something was cut away."""


def keep_head(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else text[: max(0, chars_max - 1)].rstrip() + MARK


def keep_tail(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else MARK + text[len(text) - max(0, chars_max - 1) :].lstrip()


def share_out(lengths: Sequence[int], total: int) -> list[int]:
    """Equal parts, where what the short ones leave goes to the long ones."""
    shares = [0] * len(lengths)
    for served, index in enumerate(sorted(range(len(lengths)), key=lengths.__getitem__)):
        shares[index] = min(lengths[index], total // (len(lengths) - served))
        total -= shares[index]
    return shares
