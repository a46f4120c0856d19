"""The example of a channel's assistant does what it says."""

import pytest
from channel_talk import new_id
from conftest import Installation

from examples import channel_bot


async def test_the_second_question_is_answered_from_the_first(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOREBUS_NATS_URL", installation.settings.nats_url)
    replies = await channel_bot.main(new_id(), new_id("o"))
    assert "shipit rollback payments" in replies[1]
    assert "bot: As I remember" in capsys.readouterr().out
