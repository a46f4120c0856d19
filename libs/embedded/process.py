"""Child processes: started apart from us, found again after we were killed, ended in steps.

A child has its own session (a Ctrl-C for us is not one for it), reads nothing and prints into its own log: one
that held our output would keep a pipeline open for as long as it lives.
"""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, STDOUT, Process
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from libs.embedded.errors import ServerNotStarted
from libs.embedded.folder import DataFolder

POLL_SECONDS = 0.01

# To Postgres: fast stop, stop without a checkpoint, kill. To nats-server: stop, dump and stop, kill.
STOP_STEPS = ((signal.SIGINT, 10.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))

ENVIRONMENT = {"LC_ALL": "C.UTF-8", "PATH": os.defpath}


async def spawn(folder: DataFolder, log_name: str, *arguments: str | Path) -> Process:
    """Start a program as the servers' user, its output appended to logs/<log_name>.log."""
    account = folder.account
    with folder.open_log(log_name) as log:
        try:
            return await asyncio.create_subprocess_exec(
                *arguments,
                stdin=DEVNULL,
                stdout=log,
                stderr=STDOUT,
                cwd="/",
                env=ENVIRONMENT,
                start_new_session=True,
                user=account.uid if account.is_lent else None,
                group=account.gid if account.is_lent else None,
                extra_groups=[] if account.is_lent else None,
            )
        except OSError as error:
            raise ServerNotStarted(f"cannot run {arguments[0]} as user {account.uid}: {error}") from error


def find_process(pid_file: Path, program: str, argument: Path) -> psutil.Process | None:
    """The process that a pid file names, if it is the program at work on our path.

    The number alone proves nothing: pids are used again, in a restarted container nearly always.
    """
    pid = read_pid(pid_file)
    if pid is None:
        return None
    try:
        process = psutil.Process(pid)
        command = process.cmdline()
    except psutil.Error:
        return None
    is_ours = bool(command) and Path(command[0]).name == program and str(argument) in command[1:]
    return process if is_ours else None


def read_pid(pid_file: Path) -> int | None:
    """The number on the first line, if it is one of a server: Postgres negates it when it runs for one user."""
    try:
        pid = int(pid_file.read_text().split("\n", 1)[0])
    except (FileNotFoundError, ValueError):
        return None
    return pid if pid > 0 else None


def is_pid_taken(pid: int) -> bool:
    """As Postgres asks it: a thread's number counts too."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


async def end_process(process: psutil.Process) -> None:
    """Ask, then insist, then kill."""
    for step, grace_seconds in STOP_STEPS:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(step)
        if await until(lambda: _is_gone(process), grace_seconds):
            return


async def end_child(child: Process) -> None:
    if child.returncode is None:
        with suppress(psutil.NoSuchProcess):
            await end_process(psutil.Process(child.pid))
    await child.wait()


def _is_gone(process: psutil.Process) -> bool:
    try:
        # A zombie has ended; in a container the first process may never collect it.
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for the condition, at most so long; say whether it came."""
    clock = asyncio.get_running_loop()
    deadline = clock.time() + seconds
    while not condition():
        if clock.time() >= deadline:
            return False
        await asyncio.sleep(POLL_SECONDS)
    return True
