"""Expressions for a first pass: one that matches wherever the exact one does, and is quicker to run or to build.

Bounded gaps are what makes an automaton large: it has to count, for each place where a match may have begun. Whoever
uses these finds candidates, and asks the exact expression about each.
"""

import re

REPEATS_KEPT_MAX = 16
_REPEAT = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\{(?P<least>\d+),(?P<most>\d+)\}", re.DOTALL)


def loosen(source: str) -> str:
    """Without the upper bounds of long repeats."""
    return source if r"\Q" in source else _REPEAT.sub(_loosen_repeat, source)


def _loosen_repeat(part: re.Match[str]) -> str:
    most = part["most"]
    return f"{{{part['least']},}}" if most and int(most) > REPEATS_KEPT_MAX else part[0]
