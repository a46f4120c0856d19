"""The data folder: who may use it, and what lies in it.

DATA/postgres       the cluster, the servers' user's own      DATA/logs/*.log   what the servers print
DATA/nats/store     the streams, likewise                     DATA/ports.json   the ports used last
DATA/nats/nats.conf                                           DATA/lock         held while a stack runs

Everything but the first two belongs to whoever owns DATA. When root works below a folder that the servers' user
cannot enter (/root, say), the same tree lies in /var/lib/lorebus and DATA/moved-to names it.
"""

import fcntl
import os
import secrets
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import structlog

from libs.embedded.account import Account, find_account
from libs.embedded.errors import DataFolderInUse, DataFolderUnusable

SYSTEM_FOLDER = Path("/var/lib/lorebus")
LOG_BYTES_MAX = 10_000_000

logger = structlog.get_logger()


@dataclass(frozen=True)
class DataFolder:
    """An open data folder. `home` is where its files are, `account` runs the servers on them."""

    home: Path
    account: Account
    owner: Account

    @contextmanager
    def lock(self) -> Generator[None]:
        """Keep everybody else off the folder; the kernel lets go of it even after kill -9."""
        with self._open_own(self.home / "lock", os.O_RDWR) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = file.read().decode() or "unknown"
                raise DataFolderInUse(
                    f"process {holder} already runs on {self.home}: stop it first, "
                    "or give this one a folder of its own with --data DIR"
                ) from None
            file.seek(0)
            file.truncate()
            file.write(str(os.getpid()).encode())
            file.flush()
            yield

    def make_server_folder(self, name: str) -> Path:
        """A folder for the servers' user alone."""
        folder = self.home / name
        _make(folder, 0o700)
        if folder.stat().st_uid == os.geteuid():
            self.account.own(folder)
        found = folder.stat().st_uid
        if found != self.account.uid:
            raise DataFolderUnusable(
                f"{folder} belongs to user {found}, but this run is for user {self.account.uid}: "
                "start as the user of the first start, or give another folder with --data DIR"
            )
        return folder

    def write(self, name: str, text: str) -> None:
        _replace(self.home / name, text, self.owner)

    def log_path(self, name: str) -> Path:
        return self.home / "logs" / f"{name}.log"

    def open_log(self, name: str) -> BinaryIO:
        path = self.log_path(name)
        if path.exists() and path.stat().st_size > LOG_BYTES_MAX:
            path.replace(path.with_suffix(".log.1"))
        return self._open_own(path, os.O_WRONLY | os.O_APPEND)

    def _open_own(self, path: Path, flags: int) -> BinaryIO:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        self.owner.own(descriptor)
        return os.fdopen(descriptor, "ab" if flags & os.O_APPEND else "r+b")


def open_folder(data: Path) -> DataFolder:
    """The data folder, made on first use."""
    try:
        return _open_folder(data.resolve())
    except OSError as error:
        raise DataFolderUnusable(f"cannot use the folder {data} ({error}): give another one with --data DIR") from error


def _open_folder(data: Path) -> DataFolder:
    _make(data, 0o711)
    account = find_account(data)
    home = _find_home(data, account)
    status = home.stat()
    folder = DataFolder(home, account, Account(status.st_uid, status.st_gid, is_lent=account.is_lent))
    for name in ("logs", "nats"):
        if _make(home / name, 0o711):
            folder.owner.own(home / name)
    return folder


def _find_home(data: Path, account: Account) -> Path:
    record = data / "moved-to"
    if record.exists():
        return Path(record.read_text())
    if account.can_enter(data):
        return data
    if (data / "postgres").exists():
        raise DataFolderUnusable(
            f"the servers' user {account.uid} can no longer reach {data}: let it pass through the folders above, "
            "or move the folder and name its new place with --data DIR"
        )
    return _move_home(record, account)


def _move_home(record: Path, account: Account) -> Path:
    # A new name each time: whoever deletes the data folder must not get the old memories back.
    home = SYSTEM_FOLDER / secrets.token_hex(8)
    for folder in (SYSTEM_FOLDER, home):
        _make(folder, 0o711)
    _replace(record, str(home), account)
    logger.warning("embedded.folder_moved", data=str(record.parent), home=str(home))
    return home


def _make(folder: Path, mode: int) -> bool:
    """Make a folder with exactly this mode, whatever the umask; say whether it is new."""
    try:
        folder.mkdir(mode, parents=True)
    except FileExistsError:
        return False
    folder.chmod(mode)
    return True


def _replace(target: Path, text: str, owner: Account) -> None:
    """Write a small file at once: a crash leaves the old or the new one, and no link is followed."""
    descriptor, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fchmod(descriptor, 0o644)
        owner.own(descriptor)
        os.fsync(descriptor)
    Path(draft).replace(target)
