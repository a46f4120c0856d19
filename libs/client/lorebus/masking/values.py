"""Is a value that stands where a secret may stand a secret? Pure questions about strings."""

import base64
import binascii
import math
import re
from collections import Counter
from itertools import pairwise

MASK_OPENING = "[masked:"
RANDOM_CHARS_MIN = 8
ENTROPY_BITS_MIN = 3.0
# Machine-made strings change between upper, lower and digit more often than camelCase does.
CHANGE_SHARE_MIN = 0.45

_PLACEHOLDER = re.compile(
    r"(?:\$[A-Za-z_{(]|%\(|%[a-z](?:[^a-z0-9]|$)|\{|<|@|\[|\(|process\.env|os\.|env\.|secrets\.|vars\.|getenv).*"
    r"|%\w+%|[*x.•…_#?-]{3,}|(?-i:[A-Z]{1,12}|[A-Z]+(?:_[A-Z]+)+)"
    r"|(?:your|my|the|some|fake|dummy|sample|example|invalid|expired)?[_.-]?(?:db|user|api|access|auth|secret|bearer|jwt)?[_.-]?"
    r"(?:password|passwd|pass|pwd|secret|token|key|value|credentials?|example)(?:[_.-]?here)?"
    r"|none|null|nil|undefined|true|false|string|str|text|optional|required|redacted|hidden|masked|secure|empty"
    r"|user(?:name)?|argument|parameter|options?|provided|specified|authentication|authorization|inherit|id=.*"
    # The login that every local database of a test suite has.
    r"|postgres|guest",
    re.IGNORECASE | re.DOTALL,
)
_WORD_BREAK = re.compile(r"[-_./:]")
_SLUG_PART = re.compile(r"[A-Za-z]*\d{0,2}|v?\d{1,4}")
_ATTRIBUTE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")


def is_placeholder(value: str) -> bool:
    """A mask, a variable, a type, or the word for the thing instead of the thing."""
    return MASK_OPENING in value or _PLACEHOLDER.fullmatch(value) is not None


def is_attribute(value: str) -> bool:
    """Code that reads a setting: `settings.api_token`."""
    return _ATTRIBUTE.fullmatch(value) is not None and not is_jumbled(value)


def is_random(value: str) -> bool:
    """Looks made by a machine: not words joined by dashes, not a path, not a version."""
    if len(value) < RANDOM_CHARS_MIN or is_placeholder(value) or _is_slug(value):
        return False
    if len(value) >= 2 * RANDOM_CHARS_MIN and _entropy_bits(value) < ENTROPY_BITS_MIN:
        return False
    return is_jumbled(value) or (any(map(str.isdigit, value)) and any(map(str.isalpha, value)))


def is_jumbled(value: str) -> bool:
    letters = [char for char in value if char.isalnum()]
    if len(letters) < RANDOM_CHARS_MIN:
        return False
    kinds = [(char.isdigit(), char.isupper()) for char in letters]
    changes = sum(left != right for left, right in pairwise(kinds))
    capitals = sum(map(str.isupper, letters))
    return changes >= CHANGE_SHARE_MIN * (len(letters) - 1) or len(letters) <= 3 * capitals < 2 * len(letters)


def is_base64_login(value: str) -> bool:
    """What a Basic header and a Docker config hold: `user:password` in base64."""
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except binascii.Error:
        return False
    return b":" in decoded and decoded.isascii()


def _is_slug(value: str) -> bool:
    parts = _WORD_BREAK.split(value)
    return all(_SLUG_PART.fullmatch(part) is not None and not is_jumbled(part) for part in parts)


def _entropy_bits(value: str) -> float:
    counts = Counter(value).values()
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts)
