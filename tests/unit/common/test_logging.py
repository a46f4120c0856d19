"""What a log line of an error tells, and what it must not."""

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from libs.common.logging import configure_logging


@pytest.fixture
def log_file(tmp_path: Path) -> Iterator[Path]:
    """A file of its own, without touching where the session logs."""
    root = logging.getLogger()
    before = (root.handlers, root.level, structlog.get_config())
    path = tmp_path / "log"
    configure_logging("INFO", "json", path)
    yield path
    root.handlers[0].close()
    root.handlers, root.level = before[0], before[1]
    structlog.configure(**before[2])


def fail(secret: str) -> None:
    raise ValueError(f"cannot take {secret}")


def test_an_error_is_told_by_type_and_place_never_by_its_text(log_file: Path) -> None:
    try:
        fail("the lesson's own words")
    except ValueError:
        structlog.get_logger("test").error("test.failed", exc_info=sys.exc_info())
    line = log_file.read_text()
    [told] = json.loads(line)["exception"]
    assert told["exc_type"] == "ValueError"
    assert told["frames"][-1]["name"] == "fail"
    assert "own words" not in line
