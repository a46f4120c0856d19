"""From the lines of a log to the sentence an engineer would want: the kind of failure, its cause, what it led to."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from libs.common.domain.log_lines import LogLine
from services.writer.wording.extractors.catalogue import find_causes, find_effect
from services.writer.wording.extractors.finding import Finding, clip
from services.writer.wording.failure import UNKNOWN, FailureKind, find_kind, find_proof, get_kind, speaks_of

EFFECT_CHARS_MAX = 160
_LEVEL = re.compile(r"^\W*(?:error|fatal)\b\W*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    kind: FailureKind
    cause: Finding | None = None
    effect: Finding | None = None

    def render(self) -> str:
        told = [self.cause.render().rstrip(".")] if self.cause else []
        told += [clip(self.effect.render(), EFFECT_CHARS_MAX)] if self.effect else []
        said = ": ".join(filter(None, (f"{self.kind.words} ({self.kind.name})", "; ".join(told))))
        return said if said.endswith((".", "…")) else f"{said}."

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(line for found in (self.cause, self.effect) if found for line in found.lines)


def diagnose(lines: Sequence[LogLine]) -> Diagnosis:
    """The kind is told from the whole log, and the cause is what states this kind best.

    First a tool's report that is of the kind; else the strongest line of the kind, which is how a missing module shows
    behind a failed assertion; else whatever a tool reports, which then also says the kind.
    """
    texts = [line.text for line in lines]
    kind, causes = find_kind(lines), find_causes(texts)
    cause = next((found for found in causes if _is_of(kind, found)), None) or _quote(kind, lines)
    cause = cause or next(iter(causes), None)
    if cause is None:
        return Diagnosis(kind, effect=find_effect(texts, Finding("")))
    if kind is UNKNOWN and cause.kind:
        kind = get_kind(cause.kind)
    return Diagnosis(kind, cause, find_effect(texts, cause))


def _is_of(kind: FailureKind, found: Finding) -> bool:
    return found.kind == kind.name or any(speaks_of(kind, line) for line in found.lines)


def _quote(kind: FailureKind, lines: Sequence[LogLine]) -> Finding | None:
    proof = find_proof(kind, lines)
    return Finding("", error=_LEVEL.sub("", proof.text), lines=(proof.text,)) if proof else None
