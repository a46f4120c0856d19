"""How a reply is built of what the gate let through: pure."""

from collections.abc import Sequence

from lorebus.contracts.recall import FoundLesson, RecalledItem, RecallReply, Scores, SearchReply

from libs.common.domain.fence import FencedItem, render_block
from libs.common.domain.memory import is_low_confidence, is_unverified
from libs.common.domain.tokens import count_tokens
from services.recall.choosing import find_variants
from services.recall.rules import Found

GENERAL = "GENERAL"


def build_reply(kept: Sequence[Found], dropped: int, tokens_max: int | None = None) -> RecallReply:
    shown = kept if tokens_max is None else fit_tokens(kept, tokens_max)
    variants = find_variants(shown)
    return RecallReply(
        items=[_build_item(item, variants.get(str(item.id))) for item in shown],
        block=_block_of(shown),
        dropped=dropped,
        omitted=len(kept) - len(shown),
    )


def fit_tokens(kept: Sequence[Found], tokens_max: int) -> list[Found]:
    """Whole items whose block fits, best first: one that is too long leaves its room to those behind it."""
    shown: list[Found] = []
    for item in kept:
        if count_tokens(_block_of([*shown, item])) <= tokens_max:
            shown.append(item)
    return shown


def build_search_reply(reply: RecallReply) -> SearchReply:
    lessons = [
        FoundLesson(
            lesson_id=item.id,
            summary=item.summary,
            failure_type=item.failure_type,
            confidence=item.confidence,
            similarity=round(item.similarity, 3),
        )
        for item in reply.items
    ]
    return SearchReply(lessons=lessons, degraded=reply.degraded, reason=reply.reason, detail=reply.detail)


def _build_item(item: Found, variant_of: str | None) -> RecalledItem:
    similarity = None if item.similarity is None else round(item.similarity, 6)
    scores = Scores(
        similarity=similarity,
        coverage=round(item.coverage, 6),
        fingerprint=item.same_failure,
        fused=round(item.rank, 6),
    )
    return RecalledItem(
        id=str(item.id),
        summary=item.summary,
        failure_type=item.failure_type,
        confidence=item.confidence,
        low_confidence=is_low_confidence(item.confidence),
        tier=item.tier,
        similarity=similarity or 0.0,
        scores=scores,
        variant_of=variant_of,
        created_at=item.created_at,
        run_id=item.run_id,
        from_other_channel=item.from_other_channel,
    )


def _block_of(shown: Sequence[Found]) -> str:
    variants = find_variants(shown)
    return render_block([_fence(item, variants.get(str(item.id), "")) for item in shown])


def _fence(item: Found, variant_of: str) -> FencedItem:
    return FencedItem(
        str(item.id),
        item.summary,
        item.failure_type or GENERAL,
        is_low_confidence=is_low_confidence(item.confidence),
        is_unverified=is_unverified(item.tier),
        is_from_elsewhere=item.from_other_channel,
        variant_of=variant_of,
    )
