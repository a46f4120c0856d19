"""Hosted embedding models through LiteLLM. Importing it costs seconds, so only `choose` loads this module."""

# The extra is not installed where types are checked:
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Sequence
from typing import Any, cast

import numpy.typing as npt
from openai import BadRequestError, OpenAIError, UnprocessableEntityError

from libs.common.embedding.port import Vectors, normalise
from libs.common.errors import EmbedderUnavailable, EmbeddingRefused
from libs.common.litellm_client import litellm

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
            answer = cast(
                "Any",
                await litellm.aembedding(
                    model=self._model,
                    input=list(texts),
                    timeout=_TIMEOUT_SECONDS,
                    num_retries=_RETRIES,
                    **self._options,
                ),
            )
        except (BadRequestError, UnprocessableEntityError) as error:
            raise EmbeddingRefused(f"{self._model} does not take the text: {type(error).__name__}") from error
        # LiteLLM's errors have no base of their own; all of them derive from its client library's.
        except OpenAIError as error:
            raise EmbedderUnavailable(f"{self._model} did not embed: {type(error).__name__}") from error
        rows = [cast("npt.ArrayLike", row["embedding"]) for row in answer.data]
        if len(rows) != len(texts):
            raise EmbedderUnavailable(f"{self._model} answered {len(rows)} vectors for {len(texts)} texts")
        return normalise(rows)


def create(model: str, dimensions: int | None) -> LiteLlmEmbedder:
    return LiteLlmEmbedder(model, dimensions)
