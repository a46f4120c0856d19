"""Everything on one machine: embedded servers where no real ones are named, and all services in this process."""

import json
import os
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from cli.endpoints import FILE
from libs.common.logging import configure_logging
from libs.common.provision import provision
from libs.common.run import AnyProgram, running
from libs.common.settings import CommonSettings
from libs.embedded.folder import open_folder
from libs.embedded.ports import choose_port
from libs.embedded.stack import EmbeddedStack
from services.api.app import PROGRAM as API
from services.consolidator.app import PROGRAM as CONSOLIDATOR
from services.gate.app import PROGRAM as GATE
from services.recall.app import PROGRAM as RECALL
from services.reembedder.app import PROGRAM as REEMBEDDER
from services.writer.app import PROGRAM as WRITER

PROGRAMS: dict[str, AnyProgram] = {
    program.name: program for program in (GATE, WRITER, RECALL, CONSOLIDATOR, REEMBEDDER, API)
}

STATE_FILE = "state.json"


@dataclass(frozen=True)
class Ports:
    """0 takes the port of last time, else a free one."""

    nats: int = 0
    http: int = 0
    api: int = 0


@dataclass(frozen=True)
class Machine:
    """A running installation: where it is, and what fails when one of its services does."""

    data: Path
    nats_url: str
    http_url: str
    api_url: str
    database_url: str
    start_seconds: float
    failed: Any


@asynccontextmanager
async def one_machine(
    data: Path, ports: Ports, *, programs: Sequence[AnyProgram] = tuple(PROGRAMS.values()), **settings: Any
) -> AsyncGenerator[Machine]:
    """Starts what is missing, brings schema and streams up to date, runs the services; stops all in reverse."""
    named = CommonSettings(**settings)
    folder = open_folder(data)
    configure_logging(named.log_level, "json", folder.log_path("lorebus"))
    stack = EmbeddedStack(
        data,
        nats_port=ports.nats,
        postgres="database_url" not in named.model_fields_set,
        nats="nats_url" not in named.model_fields_set,
        postgres_binaries=named.postgres_bin,
        nats_binaries=named.nats_server,
    )
    async with stack:
        common = named.model_copy(
            update={
                "database_url": stack.database_url or named.database_url,
                "nats_url": stack.nats_url or named.nats_url,
                "health_port": choose_port(folder, "http", ports.http),
                "api_port": choose_port(folder, "api", ports.api),
            }
        )
        await provision(common)
        async with running(programs, common) as failed:
            machine = Machine(
                data=data,
                nats_url=common.nats_url,
                http_url=f"http://{common.health_host}:{common.health_port}",
                api_url=f"http://{common.api_host}:{common.api_port}",
                database_url=common.database_url,
                start_seconds=time.time() - psutil.Process().create_time(),
                failed=failed,
            )
            _write_endpoints(machine)
            try:
                yield machine
            finally:
                (data / FILE).unlink(missing_ok=True)
                (data / STATE_FILE).unlink(missing_ok=True)


def _write_endpoints(machine: Machine) -> None:
    endpoints = {
        "nats": machine.nats_url,
        "http": machine.http_url,
        "api": machine.api_url,
        "database": machine.database_url,
    }
    state = {"pid": os.getpid(), "start_seconds": round(machine.start_seconds, 3)}
    for name, value in ((STATE_FILE, state), (FILE, endpoints)):
        # Renamed into place, so that a reader never sees half a file.
        draft = machine.data / f".{name}"
        draft.touch(mode=0o600)  # the address of a real database may hold its password
        draft.write_text(json.dumps(value) + "\n")
        draft.rename(machine.data / name)
