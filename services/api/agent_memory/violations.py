"""What is wrong with a request, one sentence a rule, in the words that clients of this surface know.

A sentence names the field and the rule, never the value.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

METADATA_BYTES_MAX = 8_192
OVERSIZE = f"must not be larger than {METADATA_BYTES_MAX} bytes as JSON"

_SENTENCES = {
    "missing": "{field} is required",
    "string_type": "{field} must be a string",
    "string_too_short": "{field} should not be empty",
    "string_too_long": "{field} must be shorter than or equal to {max_length} characters",
    "extra_forbidden": "property {field} should not exist",
    "string_pattern_mismatch": "{field} must be a UUID",
    "float_type": "{field} must be a number",
    "float_parsing": "{field} must be a number",
    "finite_number": "{field} must be a number",
    "greater_than_equal": "{field} must not be less than {ge:g}",
    "less_than_equal": "{field} must not be greater than {le:g}",
    "dict_type": "{field} must be an object",
    "list_type": "{field} must be an array",
    "too_long": "{field} must contain no more than {max_length} elements",
    "json_invalid": "the body is not JSON",
    "model_attributes_type": "the body must be a JSON object",
}


def explain_violations(faults: Sequence[Any]) -> list[str]:
    """Every rule that is broken, once."""
    return list(dict.fromkeys(sentence for fault in faults for sentence in _explain(fault)))


def _explain(fault: Mapping[str, Any]) -> Iterator[str]:
    path = fault["loc"][1:]  # behind `body`, `query`, `path` or `header`
    field = ".".join(str(part) for part in path if not isinstance(part, int)) or "the body"
    if path and isinstance(path[-1], int):
        field = f"each value in {field}"
    sentence = _SENTENCES.get(fault["type"], "{field} is not valid")
    if fault["type"] == "value_error":
        sentence = f"{{field}} {fault['msg'].removeprefix('Value error, ')}"
    limits: Mapping[str, Any] = fault.get("ctx", {})
    yield sentence.format(field=field, **limits)
    # A scalar is no object and has no size of one: both rules speak (sessions spec 4.1).
    if field == "metadata" and fault["type"] == "dict_type" and not isinstance(fault.get("input"), list):
        yield f"{field} {OVERSIZE}"
