"""What a Work sets for its memory steps (spec 3). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from lorebus.sessions.errors import ProviderSettingsInvalid

TOKENS_MIN, TOKENS_MAX = 100, 32_000


@dataclass(frozen=True, slots=True)
class ModifierSettings:
    is_enabled: bool = False
    purpose: str = "work-generation"
    context_tokens_max: int = 1_500
    save_summary: bool = True


def is_enabled(settings: Mapping[str, object]) -> bool:
    """Only where it says exactly true: memory is opt-in."""
    return settings.get("enabled") is True


def read_modifier_settings(settings: Mapping[str, object]) -> ModifierSettings:
    """From the names that people set: enabled, purpose, maxContextTokens, saveSummary.

    Raises ProviderSettingsInvalid for a number of tokens out of bounds.
    """
    standard = ModifierSettings()
    purpose = settings.get("purpose")
    return ModifierSettings(
        is_enabled(settings),
        purpose if isinstance(purpose, str) and purpose.strip() else standard.purpose,
        _read_tokens(settings.get("maxContextTokens", standard.context_tokens_max)),
        settings.get("saveSummary") is not False,
    )


def _read_tokens(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not TOKENS_MIN <= value <= TOKENS_MAX:
        raise ProviderSettingsInvalid(f"maxContextTokens: not a number from {TOKENS_MIN} to {TOKENS_MAX}")
    return int(value)
