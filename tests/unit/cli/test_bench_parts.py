"""Questions that nobody has asked before, for measuring."""

from cli.benchmarks.parts import space_out

QUESTION = "ruff rejects mail/cart.py: F821 Undefined name"


def test_a_spaced_out_question_is_another_text_of_the_same_words() -> None:
    texts = {space_out(QUESTION, number) for number in range(1, 32)}
    assert len(texts) == 31
    assert QUESTION not in texts
    assert {tuple(text.split()) for text in texts} == {tuple(QUESTION.split())}
