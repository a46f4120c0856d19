"""LiteLLM, set up once for every model behind it: an offline price list and no logs.

Importing it costs seconds, so that only the `hosted` adapters do, and those are imported when a setting asks for one.
"""

import logging
import os
import warnings

# Without this it asks the network for its price list.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import litellm

__all__ = ["litellm"]

# Its loggers write whole prompts and answers, to handlers of their own as well.
for _name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
    logging.getLogger(_name).disabled = True
for _name in ("openai", "httpx", "httpx2", "httpcore", "aiohttp"):
    logging.getLogger(_name).setLevel(logging.WARNING)
# pydantic complains of LiteLLM's types, and quotes the answer when they do not fit it.
warnings.filterwarnings("ignore", message="Item .* on TypedDict class .* is using the `ReadOnly` qualifier")
warnings.filterwarnings("ignore", message="Pydantic serializer warnings")

litellm.suppress_debug_info = True
litellm.turn_off_message_logging = True
