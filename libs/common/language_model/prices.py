"""What tokens cost: as set, else as LiteLLM's price list says."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from libs.common.errors import SetupIncomplete
from libs.common.language_model.port import Question
from libs.common.settings import CommonSettings

CHARS_PER_TOKEN_MIN = 2
"""Logs and paths take more tokens than prose; an estimate should not be too low."""

_MILLION = 1_000_000
_PRICE_SETTINGS = "LOREBUS_LLM_INPUT_USD_PER_MILLION_TOKENS and LOREBUS_LLM_OUTPUT_USD_PER_MILLION_TOKENS"


@dataclass(frozen=True, slots=True)
class Prices:
    """USD a token."""

    input: Decimal
    output: Decimal

    def cost_usd(self, tokens_in: int, tokens_out: int) -> Decimal:
        return self.input * tokens_in + self.output * tokens_out

    def estimate_usd(self, question: Question) -> Decimal:
        chars = sum(len(message.text) for message in question.messages)
        return self.cost_usd(chars // CHARS_PER_TOKEN_MIN, question.tokens_max)


def choose_prices(settings: CommonSettings, listed: Prices | None) -> Prices | None:
    """Raises SetupIncomplete for half a price, and for a cap that nothing could be counted against."""
    asked, answered = settings.llm_input_usd_per_million_tokens, settings.llm_output_usd_per_million_tokens
    if (asked is None) != (answered is None):
        raise SetupIncomplete(f"Set both of {_PRICE_SETTINGS}, or neither.")
    if asked is not None and answered is not None:
        return Prices(Decimal(str(asked)) / _MILLION, Decimal(str(answered)) / _MILLION)
    if listed is None and settings.llm_spend_usd_per_day_max is not None:
        raise SetupIncomplete(
            f"LOREBUS_LLM_SPEND_USD_PER_DAY_MAX is set, but no price of {settings.llm_model} is known."
            f" Set {_PRICE_SETTINGS} (0 for a model of your own), or leave the cap out."
        )
    return listed


def find_listed_prices(price_list: Mapping[str, Mapping[str, Any]], model: str) -> Prices | None:
    """The list knows some models with their provider in front, some without."""
    row = price_list.get(model) or price_list.get(model.partition("/")[2]) or {}
    prices = row.get("input_cost_per_token"), row.get("output_cost_per_token")
    if not all(isinstance(price, int | float) for price in prices):
        return None
    return Prices(*(Decimal(str(price)) for price in prices))
