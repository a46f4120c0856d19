"""What the consolidator decides, each rule by itself."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from uuid import uuid4

import numpy as np
import pytest

from libs.common.domain.calibration import cosine_of_likeness
from libs.common.domain.lexical import Frequencies
from libs.common.domain.memory import lowest_tier
from libs.common.domain.setting_cascade import Address, Stored
from libs.common.gate_client import Screening
from services.consolidator.extracting import extract, most_specific
from services.consolidator.facts import build_facts
from services.consolidator.merging import find_own, judge
from services.consolidator.rules import (
    RATIONALE_CHARS_MAX,
    TERMS_MAX,
    Job,
    Left,
    Merge,
    Scope,
    Source,
    Wording,
    build_rows,
    choose_enabled,
    choose_terms,
    common_type,
    count,
    fingerprint,
    mean_confidence,
    split_by_trust,
)

WORDS = Frequencies(100, {"build": 60, "test": 50, "fail": 40, "pin": 10, "image": 20})
JOB = Job(Scope(1, "default", "swe-lessons", "acme/shop"), "e1", "consolidation.requested:e1")


def source(summary: str = "The build fails.", **fields: object) -> Source:
    known = Source(uuid4(), summary, "", None, None, 1, datetime(2026, 11, 1, tzinfo=UTC), "0" * 64)
    return replace(known, **fields)


def merge(*sources: Source, wordings: int = 1, **fields: object) -> Merge:
    return replace(Merge(sources, [Wording(f"Text {n}.", "Why.") for n in range(wordings)], "extract"), **fields)


class TestLikeness:
    BACKGROUND = np.array([[1, 0, 0], [0.6, 0.8, 0], [0.6, 0, 0.8]], dtype=np.float32)

    def test_0_is_two_background_texts_and_1_a_text_and_itself(self) -> None:
        mean = (0.6 + 0.6 + 0.36) / 3
        assert cosine_of_likeness(0, self.BACKGROUND) == pytest.approx(mean)
        assert cosine_of_likeness(1, self.BACKGROUND) == pytest.approx(1)
        assert cosine_of_likeness(0.5, self.BACKGROUND) == pytest.approx((1 + mean) / 2)


class TestProvenance:
    def test_the_lowest_tier_counts(self) -> None:
        assert merge(source(origin_tier=2), source(origin_tier=1)).tier == lowest_tier([2, 1]) == 1

    def test_no_tier_is_the_lowest_of_none(self) -> None:
        with pytest.raises(ValueError, match="empty"):
            lowest_tier([])

    def test_a_models_words_are_an_agents(self) -> None:
        merged = merge(source(origin_tier=2), source(origin_tier=2))
        assert (merged.tier, replace(merged, model="a/b").tier) == (2, 1)

    def test_a_shared_type_is_kept_and_mixed_ones_give_none(self) -> None:
        ci, conflict, general = source(failure_type="CI_FAILURE"), source(failure_type="MERGE_CONFLICT"), source()
        assert common_type([ci, ci]) == "CI_FAILURE"
        assert common_type([ci, conflict]) is None
        assert common_type([ci, general]) is None

    def test_the_models_type_goes_before_the_common_one(self) -> None:
        told = [Wording("a", "b", "MERGE_CONFLICT"), Wording("c", "d")]
        rows = build_rows(replace(merge(source(failure_type="CI_FAILURE")), wordings=told))
        assert [row.failure_type for row in rows] == ["MERGE_CONFLICT", "CI_FAILURE"]

    def test_confidence_is_the_mean_of_those_that_are_graded(self) -> None:
        assert mean_confidence([source(confidence=0.9), source(confidence=0.3), source()]) == pytest.approx(0.6)
        assert mean_confidence([source(), source()]) is None

    def test_each_row_has_its_share_of_the_cost(self) -> None:
        rows = build_rows(merge(source(), wordings=2, model="a/b", cost_usd=Decimal("0.004")))
        assert [row.cost_usd for row in rows] == [Decimal("0.002")] * 2

    def test_evidence_is_as_new_as_the_newest(self) -> None:
        newest = datetime(2026, 11, 20, tzinfo=UTC)
        [row] = build_rows(merge(source(), source(evidence_at=newest)))
        assert row.evidence_at == newest

    def test_its_own_words_find_it_first_then_those_that_most_sources_share(self) -> None:
        shared, single = source(terms=["alpha", "beta"]), source(terms=["beta", "gamma"])
        assert choose_terms(Wording("Delta.", ""), [shared, single]) == ["delta", "beta", "alpha", "gamma"]
        many = source(terms=[f"term{number}" for number in range(2 * TERMS_MAX)])
        assert len(choose_terms(Wording("Delta.", ""), [many])) == TERMS_MAX


class TestWhatIsMergedWithWhat:
    def test_text_from_outside_is_kept_apart(self) -> None:
        assert split_by_trust([2, 0, 1, 0, 3]) == [[0, 2, 4], [1, 3]]

    def test_an_answer_holds_for_these_members_with_these_texts_alone(self) -> None:
        one, two = source(), source()
        assert fingerprint([one, two]) == fingerprint([two, one])
        assert fingerprint([one, two]) != fingerprint([one, replace(two, text_sha256="1" * 64)])
        assert fingerprint([one, two]) != fingerprint([one])

    def test_the_schedule_leaves_out_what_is_small_or_switched_off(self) -> None:
        scopes = [
            Scope(1, "default", "swe-lessons", "a/small", items_active=2),
            Scope(2, "default", "swe-lessons", "a/off", team_id="T", items_active=9),
            Scope(3, "default", "swe-lessons", "a/on", items_active=3),
        ]
        stored = Stored({Address("consolidationEnabled", "team", "T"): False}, frozenset())
        assert [scope.id for scope in choose_enabled(scopes, stored)] == [3]


class TestWithoutAModel:
    def test_the_most_specific_member_speaks(self) -> None:
        vague, exact = source("The build fails in the test."), source("The build fails: pin sphinx to 7.4 in tox.ini.")
        assert most_specific([vague, exact], WORDS) is exact

    def test_of_equals_the_more_trusted_speaks(self) -> None:
        agent, system = source("Pin sphinx.", origin_tier=1), source("Pin sphinx.", origin_tier=2)
        assert most_specific([system, agent], WORDS) is system

    def test_what_others_add_is_the_rationale_and_repeats_are_not(self) -> None:
        told = "Pin sphinx below 8 in requirements-docs.txt: autodoc, napoleon, intersphinx, viewcode, graphviz."
        chosen = source(told, rationale="The log says so.")
        other = source("Pin sphinx below 8 in requirements-docs.txt. The theme furo needs python.")
        merged = extract([chosen, other], WORDS)
        assert merged.wordings[0].summary == chosen.summary
        assert merged.wordings[0].rationale == "The log says so. The theme furo needs python."
        assert (merged.merged_by, merged.model) == ("extract", None)

    def test_the_rationale_holds_whole_sentences_within_its_bound(self) -> None:
        others = [source(f"Word{n}a word{n}b word{n}c {'x' * 80}{n}.") for n in range(20)]
        rationale = extract([source("Pin sphinx " * 60), *others], WORDS).wordings[0].rationale
        assert len(rationale) <= RATIONALE_CHARS_MAX
        assert rationale.endswith(".")

    def test_it_does_not_matter_in_which_order_they_come_for_who_speaks(self) -> None:
        sources = [source(f"Pin sphinx in {name}.") for name in ("tox.ini", "docs.txt", "setup.cfg")]
        assert most_specific(sources, WORDS) == most_specific(sources[::-1], WORDS)


class TestTheGatesWord:
    def screening(self, **found: object) -> Screening:
        return replace(Screening("set", {}, frozenset()), **found)

    def test_a_match_leaves_the_cluster_and_names_the_patterns(self) -> None:
        merged = merge(source())
        found = self.screening(matched={"0.0.summary": ["p"]}, incomplete=frozenset({"0.0.whole"}))
        assert judge(merged, found) == Left(merged.source_ids, "matched", ["p"])

    def test_a_scan_that_was_not_whole_leaves_it(self) -> None:
        merged = merge(source())
        assert judge(merged, self.screening(incomplete=frozenset({"0.0.whole"}))) == Left(
            merged.source_ids, "incomplete"
        )

    def test_risky_text_is_left_where_the_tier_is_low_and_lowered_where_it_is_not(self) -> None:
        risky = self.screening(watched={"0.0.whole": ["w"]})
        low, high = merge(source(origin_tier=1)), merge(source(origin_tier=2))
        judged = judge(high, risky)
        assert judge(low, risky) == Left(low.source_ids, "watched", ["w"])
        assert isinstance(judged, Merge)
        assert judged.tier == 1

    def test_each_merge_stands_for_itself(self) -> None:
        found = self.screening(matched={"1.0.summary": ["p"]}, incomplete=frozenset({"11.0.summary"}))
        assert find_own(found, 0) == find_own(found, 10) == self.screening()
        assert find_own(found, 1).patterns == ["p"]


class TestFacts:
    def test_counts_are_honest(self) -> None:
        left = [Left([uuid4()], "changed"), Left([uuid4()], "changed"), Left([uuid4()], "matched", ["p"])]
        tally = count(4, [merge(source(), source(), source())], left, [uuid4()])
        *refusals, outcome = build_facts(JOB, tally, left)
        assert [fact.kind for fact in refusals] == ["consolidation_refused"]
        assert outcome.model_dump(include={"clusters_found", "clusters_consolidated", "left"}) == {
            "clusters_found": 4,
            "clusters_consolidated": 1,
            "left": {"changed": 2, "matched": 1},
        }

    @pytest.mark.parametrize("reason", ["incomplete", "unreadable_answer"])
    def test_what_could_not_be_screened_is_an_outage_not_an_attack(self, reason: str) -> None:
        left = [Left([uuid4()], reason)]
        fact, _ = build_facts(JOB, count(1, [], left, []), left)
        assert (fact.kind, "security" in fact.model_dump()) == ("consolidation_scan_unavailable", False)
