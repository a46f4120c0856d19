"""Credentials of every known provider, and secrets in every known place, leave their texts. All are made up."""

import random
import re
from collections import Counter

import pytest
from credentials import PROVIDER_FORMS, Written, fill, written_credentials
from lorebus.masking.shapes import SHAPES
from lorebus.masking.texts import Masker

from libs.common.domain.masking import mask_text

MASKED_MIN = 0.98
KIND_MASKED_MIN = 0.9
"""Of a single provider or place: a random value may look like a word, or end where no word ends."""


def survives(written: Written) -> bool:
    return written.secret in mask_text(written.text)


def test_nearly_every_credential_is_masked() -> None:
    total, left = Counter[str](), Counter[str]()
    for written in written_credentials():
        total[written.kind] += 1
        left[written.kind] += survives(written)
    assert left.total() <= (1 - MASKED_MIN) * total.total()
    assert {kind: count for kind, count in left.items() if count > (1 - KIND_MASKED_MIN) * total[kind]} == {}


def test_both_engines_mask_them_alike() -> None:
    client = Masker()
    texts = [written.text for written in written_credentials()][::10]
    assert [text for text in texts if client.mask_text(text) != mask_text(text)] == []


@pytest.mark.parametrize("provider", PROVIDER_FORMS)
def test_a_shape_is_never_found_without_its_hint(provider: str) -> None:
    chance = random.Random(provider)
    for form in PROVIDER_FORMS[provider]:
        text = f"a,{fill(form, chance)},b"
        hinted = [shape for shape in SHAPES if re.search(shape.hint, text)]
        assert [shape for shape in SHAPES if re.search(shape.source, text) and shape not in hinted] == []
        assert hinted


@pytest.mark.parametrize(
    "text",
    [
        "The token is an access token of the user.",
        "The password was changed yesterday-afternoon-2026.",
        "sk-learn and sk-image are imported as sklearn",
        "re_compile_patterns_of_the_lexer",
        "API-DOCUMENTATION is generated; see sha256sum and v1.0-beta",
        "pat.match(line) and pat.search(text)",
        "format the password as %s or %(password)s or %PASSWORD%: password=%s",
        "GET http://host:8080/path?mail=a@b.example",
    ],
)
def test_texts_that_only_look_alike_stay(text: str) -> None:
    assert mask_text(text) == text
