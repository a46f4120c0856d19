"""The model that the setting `LOREBUS_LLM_MODEL` names, imported only when it is wanted."""

import asyncio
import importlib

from libs.common.errors import SetupIncomplete
from libs.common.language_model.port import LanguageModel
from libs.common.language_model.retrying import Retrying
from libs.common.settings import CommonSettings


async def open_language_model(settings: CommonSettings, retrying: Retrying | None = None) -> LanguageModel | None:
    """None where no model is set. Raises SetupIncomplete with the remedy."""
    if settings.llm_model is None:
        return None
    if "/" not in settings.llm_model:
        raise SetupIncomplete(f"LOREBUS_LLM_MODEL={settings.llm_model!r} names no provider. Use <provider>/<model>.")
    try:
        # Seconds of importing must not stop the loop.
        hosted = await asyncio.to_thread(importlib.import_module, "libs.common.language_model.hosted")
    except ImportError as error:
        raise SetupIncomplete("LOREBUS_LLM_MODEL needs LiteLLM: `pip install 'lorebus-server[llm]'`.") from error
    return hosted.create(settings, settings.llm_model, retrying or Retrying())
