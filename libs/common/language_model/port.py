"""What a language model is, and what it answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, Protocol

ANSWER_CHARS_MAX = 65_536
"""A longer answer is cut right after this and counts as unreadable."""


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """What a model is asked."""

    messages: Sequence[Message]
    tokens_max: int
    """Of the answer."""
    temperature: float | None = None
    """None: the provider's default."""
    answer_schema: Mapping[str, Any] | None = None
    """JSON schema of the answer, for providers that can keep to one; others are told by the messages alone."""


@dataclass(frozen=True, slots=True)
class Completion:
    text: str
    model: str
    cost_usd: Decimal | None
    """None where no price is known, or the provider did not count."""
    tokens_in: int = 0
    tokens_out: int = 0


class LanguageModel(Protocol):
    """A model that answers in text. Calls may take long; they never block the event loop."""

    @property
    def name(self) -> str:
        """`<provider>/<model>`."""
        ...

    async def complete(self, question: Question) -> Completion:
        """Raises ModelUnavailable for an outage, ModelRefused where asking again would not help."""
        ...

    def estimate_usd(self, question: Question) -> Decimal | None:
        """What the call may cost at most, roughly; None where no price is known."""
        ...
