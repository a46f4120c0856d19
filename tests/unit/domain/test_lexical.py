from libs.common.domain.lexical import (
    TERM_CHARS_MAX,
    TEXT_CHARS_MAX,
    Frequencies,
    count_documents,
    coverage,
    stem,
    tokenize,
    weigh_terms,
)


def test_an_identifier_gives_itself_and_its_parts():
    assert tokenize("test_rule_validDate") == ["test_rule_validdate", "test", "rul", "valid", "dat"]


def test_a_name_with_a_dash_or_a_dot_is_kept_whole_beside_its_parts():
    assert tokenize("install-jdk.sh") == ["install-jdk.sh", "install", "jdk", "sh"]


def test_forms_of_one_word_meet():
    assert len({stem(word) for word in ("fail", "fails", "failed", "failing")}) == 1
    assert stem("stopped") == stem("stops")
    assert stem("resolved") == stem("resolve")


def test_stop_words_numbers_and_single_letters_say_nothing():
    assert tokenize("it was on a 42 x of the") == []


def test_the_same_text_gives_the_same_terms():
    text = "E   ModuleNotFoundError: No module named 'reporting.utils'"
    assert tokenize(text) == tokenize(text)


def test_other_scripts_are_words_too():
    assert tokenize("ошибка сборки") == ["ошибка", "сборки"]


def test_a_mebibyte_is_read_to_its_bound_only():
    terms = tokenize("word " * 300_000)
    assert len(terms) == TEXT_CHARS_MAX // 5
    assert all(len(term) <= TERM_CHARS_MAX for term in tokenize("a" * 1_000_000 + "_b" * 1_000))


def test_documents_are_counted_once_a_term():
    counted = count_documents([["a", "a", "b"], ["a"]])
    assert counted == Frequencies(2, {"a": 2, "b": 1})


def test_frequencies_add_up():
    assert count_documents([["a"]]) + count_documents([["a", "b"]]) == Frequencies(2, {"a": 2, "b": 1})


def test_a_rare_term_weighs_more_and_no_weight_is_negative():
    counted = Frequencies(100, {"common": 100, "rare": 1})
    assert counted.idf("rare") > counted.idf("common") >= 0


def test_coverage_is_the_share_of_the_weight_that_was_found():
    weights = {"common": 1.0, "rare": 9.0}
    assert coverage(weights, ["common", "rare", "other"]) == 1
    assert coverage(weights, ["rare"]) == 0.9
    assert coverage(weights, ["common"]) == 0.1


def test_no_terms_cover_nothing():
    assert coverage({}, ["a"]) == 0
    assert coverage({"a": 1.0}, []) == 0


def test_a_rare_word_outweighs_many_common_ones():
    weights = weigh_terms(["common", "rare"], Frequencies(0, {}), Frequencies(100, {"common": 90, "rare": 1}))
    assert weights["rare"] > 9 * weights["common"]


def test_what_stands_in_too_many_items_of_a_large_scope_weighs_nothing():
    scope = Frequencies(100, {"build": 16, "parser": 15})
    weights = weigh_terms(["build", "parser"], scope, Frequencies(0, {}))
    assert weights["build"] == 0
    assert weights["parser"] > 0


def test_in_a_small_scope_every_word_counts():
    scope = Frequencies(24, {"build": 24})
    assert weigh_terms(["build"], scope, Frequencies(256, {}))["build"] > 0
