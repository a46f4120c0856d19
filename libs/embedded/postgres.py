"""Postgres with pgvector as a child process, on loopback only.

The cluster is made in a draft folder and renamed into place: a first start that was cut short leaves no half
cluster. Anybody on this machine may connect to the port (`trust`), so it is for machines of one user.
"""

import asyncio
import os
import shutil
from asyncio.subprocess import Process
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
import structlog
from sqlalchemy.ext.asyncio import create_async_engine

from libs.embedded.errors import ServerNotStarted
from libs.embedded.folder import DataFolder, open_folder
from libs.embedded.ports import HOST, choose_port
from libs.embedded.process import end_child, end_process, find_process, is_pid_taken, read_pid, spawn
from libs.embedded.programs import find_postgres
from libs.embedded.supervisor import Supervisor

USER = "postgres"
DATABASE = "lorebus"
FIND_DATABASE = sa.text("select true from pg_database where datname = :name")

# Backends outlive a killed postmaster for a moment and keep its shared memory until they notice.
SHARED_MEMORY_SECONDS_MAX = 10.0
SHARED_MEMORY_POLL_SECONDS = 0.1

SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "shared_buffers": "128MB",
    "jit": "off",
    "max_wal_size": "512MB",
    "max_connections": "100",
    # Statements and details quote values, and a log must not hold memories.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}
FORGETFUL_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

logger = structlog.get_logger()


class EmbeddedPostgres:
    """One Postgres on a data folder, restarted on its port when it dies."""

    def __init__(self, data: Path, *, port: int = 0, durable: bool = True, binaries: Path | None = None) -> None:
        self._data = data
        self._port = port
        self._durable = durable
        self._binaries = binaries
        self._supervisor: Supervisor | None = None

    async def start(self) -> str:
        """Start the server, with its cluster and database on first use; return the database's URL."""
        folder = open_folder(self._data)
        programs = await asyncio.to_thread(find_postgres, folder, self._binaries)
        cluster = Cluster(folder, programs, self._durable)
        await cluster.clear_leftovers()
        await cluster.ensure_created()
        port = choose_port(folder, "postgres", self._port)
        await self._start_server(cluster, port)
        await _ensure_database(port)
        return f"postgresql://{USER}@{HOST}:{port}/{DATABASE}"

    async def stop(self) -> None:
        if self._supervisor:
            await self._supervisor.stop()

    async def _start_server(self, cluster: "Cluster", port: int) -> None:
        self._supervisor = Supervisor(
            "postgres", cluster.folder.log_path("postgres"), lambda: cluster.launch(port), cluster.is_ready
        )
        clock = asyncio.get_running_loop()
        deadline = clock.time() + SHARED_MEMORY_SECONDS_MAX
        while True:
            try:
                return await self._supervisor.start()
            except ServerNotStarted as failure:
                if "shared memory" not in str(failure) or clock.time() > deadline:
                    raise
            await asyncio.sleep(SHARED_MEMORY_POLL_SECONDS)


@dataclass(frozen=True)
class Cluster:
    """The files of one Postgres and the programs that work on them."""

    folder: DataFolder
    programs: Path
    durable: bool

    @property
    def path(self) -> Path:
        return self.folder.home / "postgres"

    async def ensure_created(self) -> None:
        if self.path.exists():
            self.folder.make_server_folder(self.path.name)
            return
        draft = self.folder.make_server_folder(f"postgres.draft-{os.getpid()}")
        await self._run_initdb(draft)
        draft.rename(self.path)
        _sync_folder(self.folder.home)

    async def launch(self, port: int) -> Process:
        await self.clear_leftovers()
        settings = SETTINGS if self.durable else SETTINGS | FORGETFUL_SETTINGS
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        program = self.programs / "postgres"
        return await spawn(self.folder, "postgres", program, "-D", self.path, "-p", str(port), *options)

    async def is_ready(self, pid: int) -> bool:
        """As pg_ctl tells it: the pid file's first line is the postmaster, its eighth line the status."""
        try:
            lines = self._pid_file.read_text().splitlines()
        except FileNotFoundError:
            return False
        return lines[:1] == [str(pid)] and [line.strip() for line in lines[7:8]] == ["ready"]

    async def clear_leftovers(self) -> None:
        """What a killed parent or postmaster left: a running server, its pid file, a half-made cluster."""
        orphan = find_process(self._pid_file, "postgres", self.path)
        if orphan:
            logger.warning("embedded.orphan_found", server="postgres", pid=orphan.pid)
            await end_process(orphan)
        # A living pid is now somebody else's, and Postgres would refuse to start for its sake. With a dead pid
        # the file stays: it leads Postgres to the shared memory that backends may still hold.
        pid = read_pid(self._pid_file)
        if pid is not None and is_pid_taken(pid):
            self._pid_file.unlink(missing_ok=True)
        for draft in self.folder.home.glob("postgres.draft-*"):
            shutil.rmtree(draft, ignore_errors=True)

    @property
    def _pid_file(self) -> Path:
        return self.path / "postmaster.pid"

    async def _run_initdb(self, target: Path) -> None:
        options = ["--auth=trust", "--encoding=UTF8", "--locale-provider=builtin", "--locale=C.UTF-8"]
        if not self.durable:
            options.append("--no-sync")
        initdb = await spawn(self.folder, "initdb", self.programs / "initdb", "-D", target, "-U", USER, *options)
        try:
            code = await initdb.wait()
        finally:
            await end_child(initdb)
        if code != 0:
            raise ServerNotStarted(f"initdb failed: see {self.folder.log_path('initdb')}")


async def _ensure_database(port: int) -> None:
    url = sa.URL.create("postgresql+asyncpg", USER, host=HOST, port=port, database="postgres")
    engine = create_async_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool, connect_args={"ssl": False})
    async with engine.connect() as connection:
        found = await connection.scalar(FIND_DATABASE, {"name": DATABASE})
        if not found:
            await connection.execute(sa.text(f"create database {DATABASE}"))


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
