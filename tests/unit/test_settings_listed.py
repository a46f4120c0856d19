"""`.env.example` and the operations guide list every setting, with the default that the code has."""

import json
from pathlib import Path

import pytest

from cli.one_machine import PROGRAMS
from libs.common.domain.setting_keys import KEYS
from libs.common.settings import CommonSettings

ROOT = Path(__file__).parents[2]
CLASSES = [CommonSettings, *(program.settings for program in PROGRAMS.values())]
NAMES = sorted({f"LOREBUS_{name.upper()}" for settings in CLASSES for name in settings.model_fields})


@pytest.mark.parametrize("page", [".env.example", "docs/operations.md"])
def test_every_setting_is_listed(page: str) -> None:
    text = (ROOT / page).read_text()
    assert [name for name in NAMES if name not in text] == []


def test_what_administrators_set_is_listed_with_its_default() -> None:
    lines = (ROOT / "docs/operations.md").read_text().splitlines()
    shown = {cells[1]: cells[2] for line in lines if len(cells := [cell.strip(" `") for cell in line.split("|")]) > 6}
    defaults = {name: json.dumps(key.default).strip('"').removesuffix(".0") for name, key in KEYS.items()}
    assert {name: shown.get(name) for name in KEYS} == defaults
