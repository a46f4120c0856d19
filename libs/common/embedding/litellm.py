"""Hosted embedding models through LiteLLM. Importing it costs seconds, so only `choose` loads this module."""

from collections.abc import Sequence
from typing import Any

import litellm

from libs.common.embedding.port import Vectors, normalise
from libs.common.errors import EmbedderUnavailable

_TIMEOUT_SECONDS = 20.0
_RETRIES = 2


class LiteLlmEmbedder:
    """`model` is LiteLLM's name, such as `openai/text-embedding-3-large`; keys come from its own variables."""

    def __init__(self, model: str, dimensions: int | None) -> None:
        self.name = model if "/" in model else f"litellm/{model}"
        self._model = model
        self._options: dict[str, Any] = {} if dimensions is None else {"dimensions": dimensions}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        try:
            answer = await litellm.aembedding(
                model=self._model,
                input=list(texts),
                timeout=_TIMEOUT_SECONDS,
                num_retries=_RETRIES,
                **self._options,
            )
        except litellm.exceptions.APIError as error:
            raise EmbedderUnavailable(f"{self._model} did not embed: {type(error).__name__}") from error
        return normalise([row["embedding"] for row in answer.data])


def create(model: str, dimensions: int | None) -> LiteLlmEmbedder:
    return LiteLlmEmbedder(model, dimensions)
