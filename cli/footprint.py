"""What a running `lorebus up` takes: its start time and the memory of its process tree."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import psutil

from cli.one_machine import STATE_FILE


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that wrote the state file of a data folder."""

    pid: int | None = None
    start_seconds: float | None = None
    lives: bool = False


@dataclass(frozen=True, slots=True)
class MemoryBytes:
    """Resident memory: shared pages of Postgres' processes count once where the system can tell."""

    lorebus: int
    postgres: int
    nats: int

    def as_json(self) -> dict[str, int]:
        return {**asdict(self), "total": self.lorebus + self.postgres + self.nats}


def find_owner(data: Path) -> Owner:
    try:
        value: Any = json.loads((data / STATE_FILE).read_bytes())
    except (OSError, ValueError):
        return Owner()
    state = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    pid, start_seconds = state.get("pid"), state.get("start_seconds")
    if not isinstance(pid, int):
        return Owner()
    return Owner(pid, float(start_seconds) if start_seconds is not None else None, _is_lorebus(pid))


def _is_lorebus(pid: int) -> bool:
    """The number alone proves nothing: pids are used again."""
    try:
        return any(part.endswith(("lorebus", "cli", "__main__.py")) for part in psutil.Process(pid).cmdline())
    except psutil.Error:
        return False


def measure_memory(owner: Owner) -> MemoryBytes | None:
    """None where no `lorebus up` runs on this machine."""
    if owner.pid is None or not owner.lives:
        return None
    try:
        process = psutil.Process(owner.pid)
        own = process.memory_info().rss
        children = process.children(recursive=True)
    except psutil.Error:
        return None
    postgres = sum(_shared_bytes(child) for child in children if _program_of(child) == "postgres")
    nats = sum(_own_bytes(child) for child in children if _program_of(child) == "nats-server")
    return MemoryBytes(lorebus=own, postgres=postgres, nats=nats)


def _program_of(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.Error:
        return ""


def _shared_bytes(process: psutil.Process) -> int:
    """The proportional set size where the system tells it: Postgres' processes share most of their memory."""
    try:
        return int(getattr(process.memory_full_info(), "pss", 0)) or _own_bytes(process)
    except psutil.Error:
        return _own_bytes(process)


def _own_bytes(process: psutil.Process) -> int:
    """What is resident; 0 for a process that has ended."""
    try:
        return process.memory_info().rss
    except psutil.Error:
        return 0
