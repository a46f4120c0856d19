"""What embedding costs, as LiteLLM's price list says. Importing it takes seconds, so only who asks for a price does."""

import asyncio
import importlib
from collections.abc import Mapping
from typing import Any

from libs.common.embedding.choose import is_local

_MILLION = 1_000_000


async def find_usd_per_million_tokens(name: str) -> float | None:
    """Of a model by its name; None where no price is known. What runs on this machine costs nothing."""
    if is_local(name):
        return 0.0
    try:
        client = await asyncio.to_thread(importlib.import_module, "libs.common.litellm_client")
    except ImportError:
        return None
    return find_listed_price(client.litellm.model_cost, name)


def find_listed_price(price_list: Mapping[str, Mapping[str, Any]], name: str) -> float | None:
    """The list knows some models with their provider in front, some without."""
    row = price_list.get(name) or price_list.get(name.partition("/")[2]) or {}
    price = row.get("input_cost_per_token")
    return price * _MILLION if isinstance(price, int | float) else None
