"""What of a chat is worth remembering, by rules; and what of a model's answer counts."""

import json

import pytest
from lorebus.contracts.channels import ChannelMessage

from libs.common.domain.lexical import count_documents, tokenize
from libs.common.embedding.models import background_texts
from services.writer.channels.model.answer import read_facts, read_turn
from services.writer.channels.pages import choose_messages
from services.writer.channels.wording import (
    FACTS_MAX,
    TEXT_CHARS_MAX,
    Wording,
    cut,
    extract_facts,
    extract_turn,
    is_worth_keeping,
    word_raw,
)

WORDS = count_documents(tokenize(text) for text in background_texts())
TOKEN = "ghp_hB7xQ2mZ9kR4tW8vY3nL6pJ1cF5sD0gA"


def said(ts: str, text: str = "We decided to freeze deploys on Fridays.", **fields: object) -> ChannelMessage:
    return ChannelMessage.model_validate({"ts": ts, "user_id": "U1", "text": text, **fields})


class TestTurns:
    @pytest.mark.parametrize(("reply", "kept"), [("x" * 40, False), ("x" * 41, True), (f"{' ' * 30}{'x' * 40}", False)])
    def test_a_reply_longer_than_forty_characters_is_worth_keeping(self, reply: str, *, kept: bool) -> None:
        assert is_worth_keeping(reply) is kept

    def test_the_sentences_that_say_most_are_kept_in_their_order_without_courtesies_and_code(self) -> None:
        reply = (
            "Sure, happy to help! The ledger worker caches the schema in Redis. ```\nrm -rf /tmp/x\n``` "
            "Restart the ledger worker after each rollback of payments. Let me know if that works!"
        )
        wording = extract_turn("Why does the ledger fail?", reply, WORDS)
        assert wording.summary == (
            "The ledger worker caches the schema in Redis. Restart the ledger worker after each rollback of payments."
        )
        assert wording.rationale == "Asked: Why does the ledger fail?"

    def test_a_long_reply_is_cut_by_sentences_and_one_long_sentence_by_characters(self) -> None:
        many = extract_turn("", "The deploy freezes at noon on Fridays. " * 40, WORDS)
        one = extract_turn("", "deploy " * 200, WORDS)
        assert len(many.summary) <= TEXT_CHARS_MAX
        assert many.summary.endswith(".")
        assert (len(one.summary), one.summary[-1]) == (TEXT_CHARS_MAX, "…")
        assert many.rationale == ""

    def test_the_raw_exchange_is_the_reply_and_what_was_asked(self) -> None:
        assert word_raw("Why?", "Because.") == Wording("Because.", "Why?")
        assert len(cut("x" * 900)) == TEXT_CHARS_MAX


class TestPages:
    def test_messages_after_the_cursor_are_read_oldest_first_whatever_their_order(self) -> None:
        page = choose_messages([said("12.5"), said("9.9"), said("100"), said("10")], after="10", limit=50)
        assert [one.ts for one in page.messages] == ["12.5", "100"]
        assert page.cursor == "100"

    def test_bots_and_empty_messages_are_left_out_and_still_move_the_cursor(self) -> None:
        page = choose_messages([said("1", bot=True), said("2", "  ")], after=None, limit=50)
        assert (page.messages, page.cursor) == ([], "2")

    def test_an_empty_page_and_one_that_was_read_move_nothing(self) -> None:
        assert choose_messages([], after="5", limit=50).cursor is None
        assert choose_messages([said("5"), said("4")], after="5", limit=50).cursor is None

    def test_what_is_more_than_the_limit_is_left_for_the_next_page(self) -> None:
        page = choose_messages([said(str(n)) for n in range(1, 9)], after="2", limit=3)
        assert [one.ts for one in page.messages] == ["3", "4", "5"]
        assert page.cursor == "5"


class TestFactsByRules:
    def test_decisions_rules_owners_and_dates_are_facts_of_who_said_them(self) -> None:
        facts = extract_facts(
            [
                said("1", "lunch anyone? the new place is great"),
                said("2", "ok. We decided to move staging to eu-west-1.", user_id="U2"),
                said("3", "Is Dana responsible for the billing job from now on?"),
                said("4", "Dana is responsible for the billing job until March.", user_id="U4"),
            ]
        )
        assert [(fact.wording.summary, fact.authors) for fact in facts] == [
            ("We decided to move staging to eu-west-1.", ("U2",)),
            ("Dana is responsible for the billing job until March.", ("U4",)),
        ]

    def test_at_most_five_facts_are_kept_the_newest(self) -> None:
        facts = extract_facts([said(str(n), f"We decided on plan number {n} for the release.") for n in range(9)])
        assert len(facts) == FACTS_MAX
        assert "number 8" in facts[-1].wording.summary


class TestAnswers:
    MESSAGES = (said("1", user_id="U1"), said("2", user_id="U2"), said("3", user_id="U2"))

    def read(self, *facts: dict[str, object]) -> list[tuple[str, tuple[str, ...]]]:
        read = read_facts(json.dumps({"facts": facts}), self.MESSAGES)
        assert not isinstance(read, str), read
        return [(fact.wording.summary, fact.authors) for fact in read]

    def test_a_fact_is_its_messages_authors(self) -> None:
        assert self.read({"summary": "A.", "messages": [2, 3]}, {"summary": "B.", "messages": [1, 2]}) == [
            ("A.", ("U2",)),
            ("B.", ("U1", "U2")),
        ]

    @pytest.mark.parametrize("named", [[], [0, 4, -1], None], ids=["none", "not-there", "absent"])
    def test_a_fact_that_names_no_message_is_everybodys(self, named: list[int] | None) -> None:
        fact: dict[str, object] = {"summary": "A."} if named is None else {"summary": "A.", "messages": named}
        assert self.read(fact) == [("A.", ("U1", "U2"))]

    def test_no_more_than_five_facts_are_taken_and_none_is_an_answer(self) -> None:
        assert len(self.read(*({"summary": f"{n}."} for n in range(9)))) == FACTS_MAX
        assert self.read() == []

    def test_credentials_are_masked_before_a_text_is_cut(self) -> None:
        read = read_turn(json.dumps({"summary": f"{'x' * 470} {TOKEN}", "rationale": "r"}))
        assert isinstance(read, Wording)
        assert TOKEN[:12] not in read.summary
        assert len(read.summary) <= TEXT_CHARS_MAX

    @pytest.mark.parametrize("answer", ["", "no", '{"summary": ""}', '{"facts": 3}', "x" * 70_000])
    def test_an_unreadable_answer_is_told_without_its_content(self, answer: str) -> None:
        faults = read_turn(answer)
        assert isinstance(faults, str)
        assert "xx" not in faults
