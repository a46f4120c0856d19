import pytest
from lorebus.contracts.recall import Agent

from libs.common.domain.fingerprint import fingerprint_lines
from libs.common.domain.lexical import Frequencies, count_documents, tokenize
from libs.common.domain.query import QUERY_CHARS_MAX, TERMS_MAX, prepare_query

NONE = Frequencies(0, {})
LOG = """2026-03-06T10:59:03.74Z Cache restored successfully
2026-03-06T10:59:04.64Z    Compiling parser v1.9.0
2026-03-06T10:59:05.10Z error[E0425]: cannot find value `config` in this scope
2026-03-06T10:59:05.20Z   --> src/lib.rs:73:13
2026-03-06T10:59:09.10Z Uploading artifact report.xml
"""


def test_a_log_asks_with_its_error_lines():
    query = prepare_query(LOG, NONE)
    assert query.embed_text == "error[E0425]: cannot find value `config` in this scope"
    assert "config" in query.terms
    assert "cach" not in query.terms


CLIPPY = """   Compiling parser v1.9.0
error: use of deprecated lint attribute
  --> src/lib.rs:5:1
   |
LL |     assert_eq!(missing(), true);
   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   |
   = help: consider the attribute of the tool
   = note: this error originates in the macro `mac` (in Nightly builds, run with -Z macro-backtrace for more info)

error: casting `Short` to `char` loses precision
error: casting `Long` to `char` loses precision
error: aborting due to 3 previous errors
error: could not compile due to the errors above
##[error]Process completed with exit code 101.
"""


def test_a_log_asks_neither_with_the_source_it_quotes_nor_with_what_any_failure_ends_with():
    assert prepare_query(CLIPPY, NONE).embed_text.splitlines() == [
        "use of deprecated lint attribute",
        "consider the attribute of the tool",
        "casting `Short` to `char` loses precision",
    ]


def test_every_line_of_a_fault_in_several_places_finds_the_lesson_of_that_line():
    asked = prepare_query(CLIPPY, NONE).fingerprints
    assert set(fingerprint_lines(["error: casting `Long` to `char` loses precision"])) < set(asked)


def test_a_log_that_tells_nothing_but_that_it_failed_asks_with_that():
    log = "make all\nerror: could not compile due to the errors above\n##[error]Process completed with exit code 101.\n"
    assert prepare_query(log, NONE, agent="ci_fixer").embed_text == (
        "could not compile due to the errors above\nProcess completed with exit code 101."
    )


def test_any_other_text_asks_with_itself():
    assert prepare_query("  Let users undo the last edit ", NONE).embed_text == "Let users undo the last edit"


def test_terms_are_distinct_and_the_rarest_come_first():
    background = count_documents([tokenize("the test fails"), tokenize("a test of the parser")])
    assert prepare_query("test test tokenizer parser", background).terms[0] == "tokeniz"
    assert prepare_query("test test tokenizer parser", background).terms[-1] == "test"


def test_words_of_the_scopes_own_name_are_no_terms():
    assert prepare_query("release acme webshop soon", NONE, "acme/web-shop").terms == ("webshop", "releas", "soon")


def test_query_and_terms_are_bounded():
    query = prepare_query(" ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(600)), NONE)
    assert len(query.embed_text) <= QUERY_CHARS_MAX
    assert len(query.terms) == TERMS_MAX


SHORT_LOG = "Run the lint gate: 1 step\nsrc/cart.ts:14 error: 'total' is never used\nMore than 3 minutes were needed."
"""Mostly sentences, so it is read as a text unless a fixer asks."""


@pytest.mark.parametrize("agent", ["ci_fixer", "gate_fixer"])
def test_a_fixer_of_tools_asks_with_the_error_lines_however_few(agent: Agent):
    assert prepare_query(SHORT_LOG, NONE, agent=agent).embed_text == "src/cart.ts:14 error: 'total' is never used"


@pytest.mark.parametrize("agent", ["implementer", "reviewer", "review_fixer", None])
def test_any_other_agent_asks_with_the_whole_text(agent: Agent | None):
    assert prepare_query(SHORT_LOG, NONE, agent=agent).embed_text == SHORT_LOG


LONG = "first. " + "and so on. " * 300 + "last."


@pytest.mark.parametrize(
    ("agent", "kept"),
    [
        ("ci_fixer", "last."),
        ("gate_fixer", "last."),
        ("implementer", "first."),
        ("reviewer", "first."),
        ("review_fixer", "first."),
        (None, "first."),
    ],
)
def test_of_a_long_text_a_fixer_of_tools_keeps_the_end_and_any_other_the_head(agent: Agent | None, kept: str):
    asked = prepare_query(LONG, NONE, agent=agent).embed_text
    assert len(asked) <= QUERY_CHARS_MAX
    assert [word for word in ("first.", "last.") if word in asked] == [kept]


REJECTION = """[SECURITY/CRITICAL] [INJECTION] src/db.ts:88 — The query is joined from strings — Suggested fix: bind it
[QA/MAJOR] [MISSING TEST] — Nothing (not one test) covers a missing or empty list of names
[STYLE/MINOR] [NAMING] src/db.ts:9 — The name of this function says nothing about its result"""


def test_a_review_fixer_asks_with_the_reviewers_words_not_their_labels():
    assert prepare_query(REJECTION, NONE, agent="review_fixer").embed_text == (
        "The query is joined from strings — Suggested fix: bind it\n"
        "Nothing (not one test) covers a missing or empty list of names\n"
        "The name of this function says nothing about its result"
    )


def test_a_mebibyte_of_one_line_or_of_many_is_bounded():
    for text in ("a b " * 262_144, "error: no\n" * 100_000, "x" * 1_048_576):
        for agent in (None, "ci_fixer", "review_fixer"):
            assert len(prepare_query(text, NONE, agent=agent).embed_text) <= QUERY_CHARS_MAX


def test_an_empty_text_asks_nothing():
    assert prepare_query(" \n ", NONE).terms == ()
