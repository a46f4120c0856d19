"""`gate.screen`: texts in, verdicts out (contract 2.8)."""

from typing import Literal

from pydantic import Field

from lorebus.contracts.envelope import Identifier, Message, Tenant, Text

TEXTS_MAX = 64
TEXT_BYTES_MAX = 512 * 1024

VerdictKind = Literal["clean", "matched", "incomplete"]


class ScreenedText(Message):
    id: Identifier
    text: Text


class Origin(Message):
    kind: Text | None = None
    run_id: Text | None = None
    writer: Text | None = None


class ScreenRequest(Message):
    purpose: Literal["write", "recall"]
    tenant: Tenant | None = None
    origin: Origin | None = None
    texts: list[ScreenedText] = Field(max_length=TEXTS_MAX)


class ScreenVerdict(Message):
    """What the gate says about one text. `patterns` holds labels, never text."""

    id: str
    verdict: VerdictKind
    patterns: list[str] = Field(default_factory=list[str])
    watched: list[str] = Field(default_factory=list[str])
    """Labels of patterns that matched and only watch: they refuse nothing and lower the trust."""


class ScreenReply(Message):
    status: Literal["ok", "load_failed", "invalid_request"]
    pattern_set: str = ""
    verdicts: list[ScreenVerdict] = Field(default_factory=list[ScreenVerdict])
    reason: str | None = None
