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


def test_a_mebibyte_of_one_line_or_of_many_is_bounded():
    for text in ("a b " * 262_144, "error: no\n" * 100_000, "x" * 1_048_576):
        assert len(prepare_query(text, NONE).embed_text) <= QUERY_CHARS_MAX


def test_an_empty_text_asks_nothing():
    assert prepare_query(" \n ", NONE).terms == ()
