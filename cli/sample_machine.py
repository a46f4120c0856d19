"""Servers and services of their own in a temporary folder, for commands that measure on samples."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from cli.one_machine import PROGRAMS, Machine, Ports, one_machine
from cli.output import notes
from cli.own_servers import refuse_real_servers
from libs.common.run import AnyProgram
from services.recall.settings import RecallSettings

PATIENCE_SECONDS = 10.0


class PatientRecallSettings(RecallSettings):
    """A slow answer is to be measured, not cut off."""

    recall_gate_timeout_seconds: float = PATIENCE_SECONDS
    recall_store_timeout_seconds: float = PATIENCE_SECONDS


@asynccontextmanager
async def sample_machine(command: str, programs: Sequence[str], **settings: Any) -> AsyncGenerator[Machine]:
    """With these services, recall a patient one. Raises RealServersNamed where the environment names servers."""
    refuse_real_servers(command)
    with tempfile.TemporaryDirectory(prefix="lorebus-sample-") as folder:
        await asyncio.to_thread(Path(folder).chmod, 0o711)  # the servers' user has to pass through
        starting = notes.status("starting Postgres, NATS and the services")
        starting.start()
        try:
            machine = one_machine(Path(folder) / "data", Ports(), programs=_choose(programs), **settings)
            async with machine as running:
                starting.stop()
                yield running
        finally:
            starting.stop()


def _choose(names: Sequence[str]) -> list[AnyProgram]:
    return [
        replace(PROGRAMS[name], settings=PatientRecallSettings) if name == "recall" else PROGRAMS[name]
        for name in names
    ]
