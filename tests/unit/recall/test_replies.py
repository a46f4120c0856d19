"""What a reply says of what was found."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from recalled_items import found

from libs.common.domain.tokens import count_tokens
from services.recall.replies import build_reply, build_search_reply

GROUP = UUID(int=99)


def test_a_low_confidence_is_labelled_and_no_grade_is_not() -> None:
    reply = build_reply([found(1, confidence=0.3), found(2, confidence=None), found(3, confidence=0.5)], dropped=0)
    assert [item.low_confidence for item in reply.items] == [True, False, False]
    assert "[CI_FAILURE, low confidence]" in reply.block


def test_the_tier_is_told_and_text_that_nothing_vouches_for_is_labelled() -> None:
    reply = build_reply(
        [found(1, tier=0, confidence=None), found(2, tier=1), found(3, tier=0, confidence=0.3)], dropped=0
    )
    assert [item.tier for item in reply.items] == [0, 1, 0]
    assert reply.block.count("[CI_FAILURE, unverified source]") == 1
    assert reply.block.count("[CI_FAILURE, low confidence, unverified source]") == 1


def test_a_lesson_without_a_failure_type_is_general() -> None:
    assert "- [GENERAL] (lesson " in build_reply([found(1, failure_type=None)], dropped=0).block


def test_no_items_make_no_block() -> None:
    assert build_reply([], dropped=2).block == ""
    assert build_reply([], dropped=2).dropped == 2


def test_search_rounds_the_similarity_to_three_decimals() -> None:
    reply = build_search_reply(build_reply([found(1, similarity=0.123456)], dropped=0))
    assert reply.lessons[0].similarity == 0.123


def test_a_reply_says_what_each_rank_is_made_of() -> None:
    [item] = build_reply([found(1, similarity=0.61, coverage=0.4, same_failure=True, rank=9.25)], dropped=0).items
    assert item.scores
    assert item.scores.model_dump() == {"similarity": 0.61, "coverage": 0.4, "fingerprint": True, "fused": 9.25}


def test_an_item_that_no_vector_was_asked_for_has_no_similarity() -> None:
    [item] = build_reply([found(1, similarity=None)], dropped=0).items
    assert item.scores
    assert (item.similarity, item.scores.similarity) == (0.0, None)


def test_a_variant_is_labelled_with_the_one_before_it() -> None:
    reply = build_reply([found(1, variant_group=GROUP), found(2), found(3, variant_group=GROUP)], dropped=0)
    assert [item.variant_of for item in reply.items] == [None, None, str(UUID(int=1))]
    assert f"- [CI_FAILURE, variant of {UUID(int=1)}] (lesson {UUID(int=3)}) lesson 3" in reply.block


def test_a_variant_whose_other_was_withheld_is_a_lesson_like_any() -> None:
    [item] = build_reply([found(3, variant_group=GROUP)], dropped=1).items
    assert item.variant_of is None


def test_whole_items_are_left_out_that_do_not_fit_and_later_ones_take_their_room() -> None:
    items = [found(1, summary="short"), found(2, summary="long " * 200), found(3, summary="short too")]
    whole = build_reply([items[0], items[2]], dropped=0)
    reply = build_reply(items, dropped=0, tokens_max=count_tokens(whole.block))
    assert (reply.items, reply.block, reply.omitted) == (whole.items, whole.block, 1)


def test_where_not_even_one_item_fits_there_is_no_block() -> None:
    reply = build_reply([found(1)], dropped=0, tokens_max=1)
    assert (reply.items, reply.block, reply.omitted) == ([], "", 1)


@given(st.lists(st.text(max_size=300), max_size=8), st.integers(min_value=1, max_value=600))
def test_the_block_never_takes_more_tokens_than_asked_for(summaries: list[str], tokens_max: int) -> None:
    items = [found(number, summary=summary) for number, summary in enumerate(summaries)]
    reply = build_reply(items, dropped=0, tokens_max=tokens_max)
    assert count_tokens(reply.block) <= tokens_max
    assert len(reply.items) + reply.omitted == len(items)
    assert all(item.id in reply.block for item in reply.items)
