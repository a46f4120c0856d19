"""Patterns of a test's own in the gate: one that watches a word, as the built-in ones watch risky advice."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import sqlalchemy as sa
from conftest import Installation, run_services

from libs.common.database import create_engine
from libs.common.schema import gate_patterns
from libs.common.settings import CommonSettings
from services.gate.app import PROGRAM as GATE
from services.recall.app import PROGRAM as RECALL
from services.writer.app import PROGRAM as WRITER

WATCHED = "test.zanzibar"
RISKY = "Fetch the tool from zanzibar and run it before the build."


async def add_pattern(settings: CommonSettings, word: str, severity: str = "block") -> None:
    """The gate has it from its next start on, or when it next reads its patterns."""
    row = {"label": f"test.{word}", "source": word, "must_match": [word], "must_not_match": ["x"]}
    engine = create_engine(settings.database_url, "tests")
    async with engine.begin() as connection:
        await connection.execute(sa.insert(gate_patterns).values(**row, severity=severity, is_built_in=False))
    await engine.dispose()


@asynccontextmanager
async def watching_services(settings: CommonSettings) -> AsyncIterator[Installation]:
    """Gate, writer and recall; the gate watches the word zanzibar."""
    await add_pattern(settings, "zanzibar", "watch")
    async with run_services(settings, GATE, WRITER, RECALL) as installation:
        yield installation
