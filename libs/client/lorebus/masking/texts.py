"""Credentials out of texts: the value becomes `[masked:<rule>]`, the name beside it stays readable.

Run before a text is hashed, embedded, logged, stored or published. In order: values known to be secret, shapes that
name their provider, then places a secret is written to (URLs, headers, flags, assignments). Masking a masked text
changes nothing, since no rule takes a value that holds a mask.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from pydantic import JsonValue

from lorebus.masking.places import ANY_PLACE, PLACE_HINTS, PLACES, Found, Place, is_secret_flag, is_secret_name
from lorebus.masking.shapes import SHAPE_HINT, SHAPES
from lorebus.masking.values import MASK_OPENING, is_placeholder

# A shorter known value would also hit ordinary words and numbers.
KNOWN_VALUE_CHARS_MIN = 4
MASK_CHARS_MAX = 32
PASSES_MAX = 5

_OPEN_MASK = re.compile(r"\[masked:[a-z-]*$")

Compile = Callable[[str], re.Pattern[str]]


def compile_expression(source: str) -> re.Pattern[str]:
    """With Python's own engine, whose classes are as narrow as RE2's then."""
    return re.compile(source, re.ASCII)


class Masker:
    """The rules, compiled by one engine.

    `is_automaton` says that its time does not grow with the number of alternatives: then one pass over all places
    settles nearly every text. Python's engine tries them one by one, so that plain substrings are the faster way.
    """

    def __init__(self, compile_source: Compile = compile_expression, *, is_automaton: bool = False) -> None:
        self._shape_hint = compile_source(SHAPE_HINT)
        self._shapes = [(_build_mask(shape.rule), compile_source(shape.source)) for shape in SHAPES]
        self._places = [(place, compile_source(place.source)) for place in PLACES]
        self._any_place = compile_source(ANY_PLACE) if is_automaton else None

    def mask_text(self, text: str, known_values: Sequence[str] = ()) -> str:
        """The text with every credential replaced; lone surrogates, which no store takes, become question marks."""
        encodable = text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
        masked = _mask_known(encodable, known_values)
        # A mask is a new word boundary, at which a credential that was glued to the last one comes to light.
        for _ in range(PASSES_MAX):
            before, masked = masked, self._mask_places(self._mask_shapes(masked))
            if masked == before:
                break
        return masked

    def mask_json(self, value: JsonValue, known_values: Sequence[str] = ()) -> JsonValue:
        """The value with all its strings masked, keys too; those that a key or flag calls secret are masked whole."""
        if isinstance(value, str):
            return self.mask_text(value, known_values)
        if isinstance(value, list):
            return [
                _mask_whole(item) if is_secret_flag(flag) else self.mask_json(item, known_values)
                for flag, item in zip(["", *map(str, value)], value, strict=False)
            ]
        if isinstance(value, dict):
            secret_keys = {key for key in value if is_secret_name(key)} | _find_named_value(value)
            return {
                self.mask_text(key, known_values): self._mask_member(item, known_values, is_secret=key in secret_keys)
                for key, item in value.items()
            }
        return value

    def _mask_member(self, value: JsonValue, known_values: Sequence[str], *, is_secret: bool) -> JsonValue:
        masked = self.mask_json(value, known_values)
        return _mask_whole(masked) if is_secret else masked

    def _mask_shapes(self, text: str) -> str:
        if self._shape_hint.search(text) is None:
            return text
        for mask, shape in self._shapes:
            text = shape.sub(lambda _, mask=mask: mask, text)
        return text

    def _mask_places(self, text: str) -> str:
        if self._any_place is not None and self._any_place.search(text) is None:
            return text
        lowered = text.lower()
        hints = {hint for hint in PLACE_HINTS if hint in lowered}
        for place, expression in self._places:
            if not place.hints.isdisjoint(hints):
                text = _mask_place(text, place, expression)
        return text


def _find_named_value(value: Mapping[str, JsonValue]) -> set[str]:
    """`{"name": "DB_PASSWORD", "value": "x"}`, as containers list their environment."""
    name = value.get("name", value.get("key"))
    return {"value"} if isinstance(name, str) and is_secret_name(name) else set()


def _mask_whole(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return value if not value or is_placeholder(value) else _build_mask("field")
    return [_mask_whole(item) for item in value] if isinstance(value, list) else value


def _build_mask(rule: str) -> str:
    return f"{MASK_OPENING}{rule}]"


def _mask_known(text: str, known_values: Sequence[str]) -> str:
    present = [value for value in known_values if len(value) >= KNOWN_VALUE_CHARS_MIN and value in text]
    if not present:
        return text
    longest_first = sorted(present, key=len, reverse=True)
    # Masks come first in the alternation, so that a known value such as "masked" leaves them whole.
    alternatives = "|".join((r"\[masked:[a-z-]+\]", *map(re.escape, longest_first)))
    return re.sub(alternatives, _mask_known_hit, text)


def _mask_known_hit(match: re.Match[str]) -> str:
    return match.group() if match.group().startswith(MASK_OPENING) else _build_mask("known")


def _mask_place(text: str, place: Place, expression: re.Pattern[str]) -> str:
    pieces: list[str] = []
    position = 0
    groups = expression.groupindex
    for match in expression.finditer(text):
        found = _read(match, groups, text)
        start, end = found.span
        if place.accepts(found) and not _is_inside_mask(text, start):
            pieces += (text[position:start], _build_mask(place.rule))
            position = end
    return "".join((*pieces, text[position:])) if pieces else text


def _is_inside_mask(text: str, position: int) -> bool:
    # `https://[masked:github]@host` reads like a user named `[masked` with a password.
    return _OPEN_MASK.search(text[max(0, position - MASK_CHARS_MAX) : position]) is not None


def _read(match: re.Match[str], groups: Mapping[str, int], text: str) -> Found:
    spans = {name: span for name, index in groups.items() if (span := match.span(index))[0] >= 0}
    parts = {name: text[start:end] for name, (start, end) in spans.items()}
    value = next(name for name in ("dq", "sq", "bt", "bare") if name in spans)
    return Found(
        value=parts[value],
        span=spans[value],
        quoted=value != "bare",
        name=parts.get("name", ""),
        suffix=parts.get("suffix", ""),
        separator=parts.get("separator", ""),
        after=text[match.end() : match.end() + 1],
    )
