"""A context: the entries that fit, as many as the budget holds, in text that no fence around it can be closed by."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from libs.common.domain.fence import neutralise, neutralise_lines
from services.api.rules import Record

BYTES_PER_TOKEN = 4
"""Few enough for code and prose; hosts cut at four characters a token."""


@dataclass(frozen=True, slots=True)
class Block:
    """One entry of a context."""

    id: str
    content: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Context:
    content: str = ""
    tokens: int = 0
    blocks: Sequence[Block] = ()
    references: Sequence[Record] = field(default_factory=tuple[Record, ...])


def estimate_tokens(text: str) -> int:
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def build_context(records: Sequence[Record], tokens_max: int) -> Context:
    """Whole entries only, the best first; one that does not fit leaves its place to the next."""
    kept: list[tuple[Record, Block]] = []
    left = tokens_max
    for record in records:
        block = _build_block(record)
        if block.tokens <= left:
            kept.append((record, block))
            left -= block.tokens
    blocks = [block for _, block in kept]
    content = "\n".join(block.content for block in blocks)
    return Context(content, estimate_tokens(content), blocks, [record for record, _ in kept])


def _build_block(record: Record) -> Block:
    about = ", ".join([f"{record.created_at:%Y-%m-%d}", *map(neutralise, record.tags)])
    content = f"- ({about}) {neutralise_lines(record.content)}"
    # With the line break before the next one.
    return Block(record.id, content, estimate_tokens(f"{content}\n"))
