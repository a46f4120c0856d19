"""`.env.example` and the operations guide list every setting, with the default that the code has."""

from pathlib import Path

import pytest

from cli.one_machine import PROGRAMS
from libs.common.settings import CommonSettings

ROOT = Path(__file__).parents[2]
CLASSES = [CommonSettings, *(program.settings for program in PROGRAMS.values())]
NAMES = sorted({f"LOREBUS_{name.upper()}" for settings in CLASSES for name in settings.model_fields})


@pytest.mark.parametrize("page", [".env.example", "docs/operations.md"])
def test_every_setting_is_listed(page: str) -> None:
    text = (ROOT / page).read_text()
    assert [name for name in NAMES if name not in text] == []
