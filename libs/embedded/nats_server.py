"""nats-server with JetStream as a child process, on loopback only."""

import asyncio
import json
from asyncio.subprocess import Process
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from libs.embedded.folder import DataFolder, open_folder
from libs.embedded.ports import HOST, choose_port
from libs.embedded.process import end_process, find_process, spawn
from libs.embedded.programs import find_nats_server
from libs.embedded.supervisor import Supervisor

PID_FILE = "nats.pid"
GREETING = b"INFO "
GREETING_SECONDS_MAX = 1.0

CONFIG = """\
# Written at every start: changes are lost.
listen: "{host}:{port}"
http: "{host}:{monitor_port}"
pid_file: {pid_file}
max_payload: 1MB
jetstream {{
  store_dir: {store}
  max_mem: 256MB
  max_file: 4GB
{sync}}}
"""
# The default acknowledges a message up to two minutes before it is on disk.
SYNC = "  sync_interval: always\n"

logger = structlog.get_logger()


class EmbeddedNats:
    """One nats-server on a data folder, restarted on its port when it dies."""

    def __init__(self, data: Path, *, port: int = 0, durable: bool = True, binaries: Path | None = None) -> None:
        self._data = data
        self._port = port
        self._durable = durable
        self._binaries = binaries
        self._supervisor: Supervisor | None = None

    async def start(self) -> str:
        """Start the server; return its URL."""
        folder = open_folder(self._data)
        program = await asyncio.to_thread(find_nats_server, folder, self._binaries)
        server = Server(folder, program)
        await server.end_orphan()
        port = choose_port(folder, "nats", self._port)
        server.write_config(port, choose_port(folder, "nats-monitor", 0), durable=self._durable)
        self._supervisor = Supervisor("nats", folder.log_path("nats"), server.launch, lambda _pid: is_greeting(port))
        await self._supervisor.start()
        return f"nats://{HOST}:{port}"

    async def stop(self) -> None:
        if self._supervisor:
            await self._supervisor.stop()


@dataclass(frozen=True)
class Server:
    """The files of one nats-server and the program that works on them."""

    folder: DataFolder
    program: Path

    @property
    def config(self) -> Path:
        return self.folder.home / "nats" / "nats.conf"

    @property
    def _store(self) -> Path:
        return self.folder.home / "nats" / "store"

    def write_config(self, port: int, monitor_port: int, *, durable: bool) -> None:
        store = self.folder.make_server_folder("nats/store")
        text = CONFIG.format(
            host=HOST,
            port=port,
            monitor_port=monitor_port,
            store=_quote(store),
            pid_file=_quote(store / PID_FILE),
            sync=SYNC if durable else "",
        )
        self.folder.write("nats/nats.conf", text)

    async def launch(self) -> Process:
        return await spawn(self.folder, "nats", self.program, "-c", self.config)

    async def end_orphan(self) -> None:
        """Two servers on one store would ruin it, and nats-server itself does not look."""
        orphan = find_process(self._store / PID_FILE, self.program.name, self.config)
        if orphan:
            logger.warning("embedded.orphan_found", server="nats", pid=orphan.pid)
            await end_process(orphan)


def _quote(path: Path) -> str:
    """The configuration's strings are JSON's, but for \\u: what is beyond ASCII stays as it is."""
    return json.dumps(str(path), ensure_ascii=False)


async def is_greeting(port: int) -> bool:
    """Whether a nats-server says its first word: it listens only when its streams are loaded."""
    with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(GREETING_SECONDS_MAX):
            reader, writer = await asyncio.open_connection(HOST, port)
            try:
                return await reader.readexactly(len(GREETING)) == GREETING
            finally:
                writer.close()
    return False
