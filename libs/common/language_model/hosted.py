"""Hosted and local models through LiteLLM. Importing it costs seconds, so only `choose` loads this module."""

# LiteLLM's types are partial:
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

import asyncio
from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from typing import Any, cast

from openai import OpenAIError

from libs.common.errors import ModelRefused, ModelUnavailable
from libs.common.language_model.port import ANSWER_CHARS_MAX, Completion, Question
from libs.common.language_model.prices import choose_prices, find_listed_prices
from libs.common.language_model.retrying import CallFailed, Retrying
from libs.common.litellm_client import litellm
from libs.common.settings import CommonSettings

_WORTH_ANOTHER_TRY = {408, 409, 425, 429}
_KEY_REMEDY = "set or renew the API key in the provider's own variable (OPENAI_API_KEY, ANTHROPIC_API_KEY, …)"
_REMEDIES = {
    401: _KEY_REMEDY,
    402: "the account has no credit left",
    403: _KEY_REMEDY,
    404: "check LOREBUS_LLM_MODEL and LOREBUS_LLM_API_BASE",
}
_OTHER_REMEDY = "check LOREBUS_LLM_MODEL, and that the model takes questions this long"


class LiteLlmModel:
    """Keys come from the provider's own variables."""

    def __init__(self, settings: CommonSettings, name: str, retrying: Retrying) -> None:
        self.name = name
        self._retrying = retrying
        self._timeout_seconds = settings.llm_timeout_seconds
        self._fixed: dict[str, Any] = {
            "model": name,
            "api_base": settings.llm_api_base,
            "timeout": settings.llm_timeout_seconds / 2,
            "max_retries": 0,
            # Models without a temperature or a format are asked all the same.
            "drop_params": True,
        }
        self._prices = choose_prices(settings, find_listed_prices(litellm.model_cost, name))

    def estimate_usd(self, question: Question) -> Decimal | None:
        return self._prices and self._prices.estimate_usd(question)

    async def complete(self, question: Question) -> Completion:
        options = {**self._fixed, **self._options(question)}
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await self._retrying.call(partial(self._ask, options))
        except TimeoutError:
            raise ModelUnavailable(f"{self.name} did not answer within {self._timeout_seconds:g} s") from None

    def _options(self, question: Question) -> dict[str, Any]:
        options = {
            "messages": [{"role": message.role, "content": message.text} for message in question.messages],
            "max_tokens": question.tokens_max,
            "temperature": question.temperature,
            "response_format": build_response_format(self.name, question.answer_schema),
        }
        return {name: option for name, option in options.items() if option is not None}

    async def _ask(self, options: Mapping[str, Any]) -> Completion:
        try:
            return self._read(cast("Any", await litellm.acompletion(**options)))
        except litellm.exceptions.BadRequestError as error:
            if "response_format" not in options:
                raise self._translate(error) from None
        # LiteLLM's errors have no base of their own; all of them derive from its client library's.
        except OpenAIError as error:
            raise self._translate(error) from None
        except IndexError:
            # LiteLLM trips over an answer without choices, as content filters give.
            return Completion("", self.name, cost_usd=None)
        # Some servers refuse a format that LiteLLM believes they take.
        return await self._ask({name: option for name, option in options.items() if name != "response_format"})

    def _translate(self, error: OpenAIError) -> CallFailed | ModelRefused:
        """Errors of LiteLLM quote the answer, so neither their text nor they themselves go on."""
        status = 401 if _is_without_key(error) else int(getattr(error, "status_code", 500))
        if 400 <= status < 500 and status not in _WORTH_ANOTHER_TRY:
            return ModelRefused(f"{self.name} refused the question ({status}): {_REMEDIES.get(status, _OTHER_REMEDY)}")
        return CallFailed(f"{self.name} did not answer: {type(error).__name__} ({status})", _find_retry_after(error))

    def _read(self, answer: Any) -> Completion:
        tokens_in, tokens_out = int(answer.usage.prompt_tokens), int(answer.usage.completion_tokens)
        return Completion(
            text=str(answer.choices[0].message.content or "")[: ANSWER_CHARS_MAX + 1],
            model=self.name,
            cost_usd=self._prices.cost_usd(tokens_in, tokens_out) if self._prices and tokens_in else None,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
        )


def build_response_format(model: str, schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The strictest form that LiteLLM knows the model to take; None leaves it to the messages."""
    if schema is None or "response_format" not in (litellm.get_supported_openai_params(model) or []):
        return None
    if litellm.supports_response_schema(model):
        return {"type": "json_schema", "json_schema": {"name": "answer", "schema": dict(schema)}}
    return {"type": "json_object"}


def _find_retry_after(error: OpenAIError) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    seconds = str(headers.get("retry-after", ""))
    return float(seconds) if seconds.isdecimal() else None


def _is_without_key(error: BaseException | None) -> bool:
    """No key was given at all: LiteLLM calls that an internal error of the server, which was never asked."""
    while error is not None:
        if type(error) is OpenAIError:
            return True
        error = error.__cause__ or error.__context__
    return False


def create(settings: CommonSettings, name: str, retrying: Retrying) -> LiteLlmModel:
    return LiteLlmModel(settings, name, retrying)
