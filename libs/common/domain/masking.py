"""Credentials out of texts, with RE2: a hostile log or transcript costs time in proportion to its length.

Run before a text is hashed, embedded, logged, stored or published. The rules are the client's
(`lorebus.masking`), so that callers can mask before a text leaves their process.
"""

import re
from typing import Any, cast

import re2  # pyright: ignore[reportMissingTypeStubs]
from lorebus.masking.texts import Masker

_re2 = cast(Any, re2)  # google-re2 ships no types; what it compiles answers as re.Pattern does


def _compile(source: str) -> re.Pattern[str]:
    options = _re2.Options()
    options.log_errors = False
    options.max_mem = 32 << 20
    return cast("re.Pattern[str]", _re2.compile(source, options))


_MASKER = Masker(_compile, is_automaton=True)
mask_text = _MASKER.mask_text
mask_json = _MASKER.mask_json
