"""WordLlama from its wheel: averaged static token vectors, 256 dimensions, no download."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import numpy.typing as npt
import wordllama
from wordllama import WordLlama

from libs.common.embedding.port import Vectors, normalise

_PACKAGE = Path(wordllama.__file__).parent
_DIMENSIONS = 256


class WordLlamaEmbedder:
    """The default embedder: needs nothing but its wheel."""

    name = "wordllama/l2_supercat_256"

    def __init__(self) -> None:
        # The package looks for `tokenizer/` beside its code, the wheel has `tokenizers/`: the cache path finds it.
        self._model = WordLlama.load(dim=_DIMENSIONS, cache_dir=_PACKAGE, disable_download=True)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="wordllama")

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._embed, list(texts))

    def _embed(self, texts: list[str]) -> Vectors:
        return normalise(cast("npt.ArrayLike", self._model.embed(texts)))


def create(_model: str, _dimensions: int | None) -> WordLlamaEmbedder:
    return WordLlamaEmbedder()
