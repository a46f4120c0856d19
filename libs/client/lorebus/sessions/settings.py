"""How a backend is reached: what the host has set, else the environment, else the defaults (spec 5).

| setting | variable | default |
|---|---|---|
| baseUrl | AGENTMEMORY_BASE_URL | http://localhost:3111 |
| apiKey | AGENTMEMORY_API_KEY | none |
| projectId | AGENTMEMORY_PROJECT | ever-works |
| timeoutMs | | 30000, from 1000 to 120000 |
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from lorebus.sessions.address import Address, parse_address
from lorebus.sessions.errors import ProviderSettingsInvalid

Settings = Mapping[str, object]
"""By the names that people set; what they left blank counts as not set."""

BASE_URL_DEFAULT = "http://localhost:3111"
PROJECT_DEFAULT = "ever-works"
"""What backends of this format read as "no project was named"."""
TIMEOUT_MS_DEFAULT, TIMEOUT_MS_MIN, TIMEOUT_MS_MAX = 30_000, 1_000, 120_000
VARIABLES = {
    "baseUrl": "AGENTMEMORY_BASE_URL",
    "apiKey": "AGENTMEMORY_API_KEY",
    "projectId": "AGENTMEMORY_PROJECT",
}


@dataclass(frozen=True, slots=True)
class AgentMemorySettings:
    address: Address
    api_key: str = field(default="", repr=False)
    project: str = PROJECT_DEFAULT
    timeout_seconds: float = TIMEOUT_MS_DEFAULT / 1000


def read_settings(given: Settings, environment: Mapping[str, str] = os.environ) -> AgentMemorySettings:
    """A set value beats the environment. Raises ProviderSettingsInvalid."""
    return AgentMemorySettings(
        parse_address(_find_text("baseUrl", given, environment) or BASE_URL_DEFAULT),
        _read_key(_find_text("apiKey", given, environment)),
        _find_text("projectId", given, environment) or PROJECT_DEFAULT,
        _read_timeout(given.get("timeoutMs")) / 1000,
    )


def is_recall_enabled(*layers: Settings) -> bool:
    """Unless the agent's or the Work's `memoryRecallEnabled` is exactly false (spec 3.3)."""
    return not any(layer.get("memoryRecallEnabled") is False for layer in layers)


def _find_text(name: str, given: Settings, environment: Mapping[str, str]) -> str:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise ProviderSettingsInvalid(f"{name}: not a text")
    return (value or "").strip() or environment.get(VARIABLES[name], "").strip()


def _read_key(key: str) -> str:
    # It goes into a header, which a line break would end.
    if not (key.isascii() and key.isprintable()):
        raise ProviderSettingsInvalid("apiKey: only printable ASCII characters fit into a header")
    return key


def _read_timeout(value: object) -> float:
    if value is None:
        return TIMEOUT_MS_DEFAULT
    if isinstance(value, bool) or not isinstance(value, int | float) or not TIMEOUT_MS_MIN <= value <= TIMEOUT_MS_MAX:
        raise ProviderSettingsInvalid(f"timeoutMs: not a number from {TIMEOUT_MS_MIN} to {TIMEOUT_MS_MAX}")
    return float(value)
